// What the pages do by themselves: save what is chosen, show how far work is, keep tabs apart. Nothing is computed here.
"use strict";
const session = document.body.dataset.session;
const at = path => `/s/${session}/${path}`;
const every = (query, within = document) => [...within.querySelectorAll(query)];
const say = text => {
  const place = document.getElementById("sentence");
  place.replaceChildren();
  if (text) {
    const line = document.createElement("p");
    line.className = "warning";
    line.textContent = text;
    place.append(line);
  }
};

// --- tabs: the same session in a second tab becomes a copy of it
const tabs = new BroadcastChannel("privacyfunnel");
const mine = Math.random().toString(36).slice(2);
let moving = false;
tabs.onmessage = async ({ data }) => {
  if (data.session !== session || data.from === mine || moving) return;
  if (data.kind === "hello") tabs.postMessage({ kind: "taken", session, from: mine, to: data.from });
  else if (data.kind === "taken" && data.to === mine) {
    moving = true;
    const answer = await fetch(at("copy"), { method: "POST" });
    location.replace(location.pathname.replace(session, (await answer.json()).session));
  }
};
const hello = () => tabs.postMessage({ kind: "hello", session, from: mine });
window.addEventListener("pageshow", event => { if (event.persisted) location.reload(); });
hello();
every("[data-new]").forEach(button => button.addEventListener("click", async () => {
  const answer = await fetch(at("copy?fresh=yes"), { method: "POST" });
  window.open(`/s/${(await answer.json()).session}/table`, "_blank", "noopener");
}));

// --- forms that save themselves
const body = form => new URLSearchParams(new FormData(form));
let waiting = null;
async function save(form) {
  clearTimeout(waiting);
  form.dataset.unsaved = "";
  const answer = await fetch(form.dataset.autosave || form.action, { method: "POST", body: body(form), headers: { Accept: "application/json" } });
  if (answer.ok) say((await answer.json()).sentence);
}
function autosave(form) {
  const later = () => {
    form.dataset.unsaved = "yes";
    clearTimeout(waiting);
    waiting = setTimeout(() => save(form), 150);
  };
  form.addEventListener("input", later);
  form.addEventListener("change", later);
  window.addEventListener("pagehide", () => {
    if (form.dataset.unsaved) navigator.sendBeacon(form.dataset.autosave || form.action, body(form));
  });
}

// --- roles: what can be said of a column depends on its role; bins are drawn as they are chosen
async function draw(form, number) {
  const place = form.querySelector(`[data-cut="${number}"]`), field = form.querySelector(`[data-bin="${number}"]`);
  if (!place || !field) return;
  const asked = field.value;
  const answer = await fetch(at(`roles/cut?column=${number}&how=${encodeURIComponent(asked)}`));
  if (field.value === asked) place.innerHTML = await answer.text();
}
function roles(form) {
  let soon = null;
  form.addEventListener("change", ({ target }) => {
    if (!target.name || !target.name.startsWith("role.")) return;
    const column = target.closest("[data-column]");
    column.dataset.role = target.value;
    if (["secret", "publish"].includes(target.value)) draw(form, column.dataset.column);
  });
  form.addEventListener("input", ({ target }) => {
    const number = target.dataset.bin;
    if (number === undefined) return;
    clearTimeout(soon);
    soon = setTimeout(() => draw(form, number), 200);
  });
  every("[data-bin]", form).forEach(field => {
    const role = field.closest("[data-column]").dataset.role;
    if (field.value && ["secret", "publish"].includes(role)) draw(form, field.dataset.bin);
  });
}

// --- the promise: slider, factor and beliefs move together
function promise(form) {
  const slider = form.querySelector("[data-slider]"), factor = form.querySelector("[data-factor]");
  const epsilon = form.querySelector("[data-epsilon]"), shown = form.querySelector("[data-epsilon-shown]");
  const beliefs = document.getElementById("beliefs");
  let asked = 0;
  form.addEventListener("input", async ({ target }) => {
    if (target === slider) {
      epsilon.value = slider.value;
      factor.value = (Math.ceil(Math.exp(slider.value) * 100 - 1e-9) / 100).toString();
    } else if (target === factor && factor.value > 1) {
      epsilon.value = Math.log(factor.value).toString();
      slider.value = epsilon.value;
    }
    shown.value = Number(epsilon.value).toPrecision(3);
    const mine = ++asked;
    const answer = await fetch(`${form.dataset.live}?${body(form)}`);
    if (mine === asked && answer.ok) beliefs.innerHTML = await answer.text();
  });
}

// --- uploads, streamed, with progress
function upload(field) {
  field.addEventListener("change", () => {
    const file = field.files[0];
    if (!file) return;
    const bar = field.closest("form, fieldset").querySelector("progress");
    const request = new XMLHttpRequest();
    bar.hidden = false;
    request.upload.onprogress = event => { bar.value = event.loaded / event.total; };
    request.onload = () => {
      bar.hidden = true;
      if (request.status === 200) location.reload();
      else say(JSON.parse(request.responseText || "{}").sentence || "The file did not arrive.");
    };
    request.onerror = () => { bar.hidden = true; say("The file did not arrive. Is the studio still running?"); };
    request.open("POST", at(`upload/${field.dataset.upload}`));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.setRequestHeader("X-File-Name", encodeURIComponent(file.name));
    request.send(file);
  });
}

// --- parts that wait for work
async function follow(part) {
  let shown = null;
  while (part.dataset.state === "working") {
    await new Promise(done => setTimeout(done, 200));
    let told;
    try {
      told = await (await fetch(part.dataset.part)).json();
    } catch {
      say("The studio does not answer. Was it ended?");
      return;
    }
    if (told.html !== shown && (told.state !== "working" || String(told.heard) !== part.dataset.heard)) {
      const focused = part.contains(document.activeElement) ? document.activeElement.closest("form")?.action : null;
      part.innerHTML = shown = told.html;
      if (focused) every("form", part).find(form => form.action === focused)?.querySelector("button")?.focus();
      wire(part);
    }
    part.dataset.heard = told.heard;
    part.dataset.state = told.state;
  }
  part.setAttribute("aria-busy", "false");
}

const KINDS = {
  "form[data-autosave]": autosave,
  "form[data-roles]": roles,
  "form[data-live]": promise,
  "form[data-submit-on-change]": form => form.addEventListener("change", () => form.submit()),
  "input[data-upload]": upload,
  "[data-copy]": button => button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  }),
};
function wire(within) {
  for (const [query, begin] of Object.entries(KINDS)) every(query, within).forEach(begin);
}
wire(document);
every("[data-part]").forEach(follow);
if (document.querySelector("#sentence .warning")) document.getElementById("main").focus();
