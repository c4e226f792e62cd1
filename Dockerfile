# The command in a container: docker run --rm -v "$PWD:/data" privacyfunnel sanitise people.csv …
FROM python:3.11-slim
COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[studio]" && rm -rf /source && useradd owner
USER owner
WORKDIR /data
ENTRYPOINT ["privacyfunnel"]
