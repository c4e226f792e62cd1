"""The paper's experiments: numbers, pictures of them, and a page that sets both beside what the paper reports."""
