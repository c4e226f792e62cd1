"""The pictures: well formed, described, and pleasant in a real browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacyfunnel.report import svg
from tests.commands import LONGEST
from tests.report.released import KINDS, page, readme, released


def test_every_picture_is_well_formed_and_described() -> None:
    text = page("several")
    found = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert found
    for picture in found:
        ElementTree.fromstring(picture)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    drawn = len(found) + text.count('<div class="bars"')
    assert len(re.findall(r'role="img" aria-label="[^"]{40,}"', text)) == drawn


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FRAME = '<iframe id="{id}" style="width:{width}px;height:900px;border:0" srcdoc="{page}"></iframe>'
PROBE = """<!doctype html><meta charset="utf-8"><body>{frames}<script>
const found = {{errors: [], frames: {{}}}};
window.addEventListener("error", e => found.errors.push(String(e.message)));
function look(frame) {{
  const d = frame.contentDocument, root = d.documentElement, box = e => e.getBoundingClientRect();
  const names = [...d.querySelectorAll(".bars > .name")], tracks = [...d.querySelectorAll(".bars > .track")];
  const ticks = [...d.querySelectorAll(".scale")].map(s => [...s.children].filter(t => box(t).width).map(t => box(t)));
  found.frames[frame.id] = {{
    scroll: root.scrollWidth, width: root.clientWidth,
    figures: [...d.querySelectorAll("figure svg")].map(s => [box(s).width, box(s).height]),
    cut: names.filter(n => n.scrollWidth > n.clientWidth + 1).length,
    tracks: tracks.map(t => box(t).width),
    marks: [...d.querySelectorAll(".bars .track i")].filter(m => box(m).width == 0 || box(m).height == 0).length,
    overlap: ticks.filter(row => row.some((t, i) => i && t.left < row[i - 1].right)).length,
    broken: [...d.querySelectorAll("tbody th")].filter(t => t.scrollWidth > t.clientWidth + 1).length,
    scripts: d.querySelectorAll("script").length,
  }};
}}
window.addEventListener("load", () => {{
  document.querySelectorAll("iframe").forEach(look);
  document.title = JSON.stringify(found);
}});
</script></body>"""


def test_a_real_browser_shows_every_figure_without_errors_cut_names_or_sideways_scrolling(tmp_path: Path) -> None:
    assert BROWSER, "this test needs a browser: apt-get install chromium"
    shown = {f"{kind} {width}": (page(kind), width) for kind in ("several", "three") for width in (390, 1200)}
    shown["public 390"] = (readme(released(*KINDS["one column"])), 390)
    frames = [FRAME.format(id=name, width=width, page=html.escape(text)) for name, (text, width) in shown.items()]
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(frames="".join(frames)), encoding="utf-8")
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--enable-logging=stderr", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,1000",
            "--virtual-time-budget=5000",
            "--dump-dom", probe.as_uri(),
        ],
        capture_output=True, text=True, timeout=LONGEST, check=True,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    (title,) = re.findall(r"<title>(.*?)</title>", done.stdout)[:1]
    found = json.loads(html.unescape(title))
    assert found["errors"] == []
    assert found["frames"].keys() == shown.keys()
    for name, (_, width) in shown.items():
        seen = found["frames"][name]
        assert seen["scripts"] == seen["cut"] == seen["marks"] == seen["overlap"] == seen["broken"] == 0, (name, seen)
        assert width - 20 <= seen["width"] <= width  # a scroll bar for going down may take a little
        assert seen["scroll"] <= seen["width"], name
        assert all(w > 200 and h > 100 for w, h in seen["figures"])
        assert all(track >= 90 for track in seen["tracks"]), name


@given(
    st.text(max_size=30),
    st.floats(1e-12, 1e12),
    st.floats(1.01, 1e6),
    st.booleans(),
)
def test_pictures_hold_any_text_and_scales_have_round_ticks_within(
    text: str, low: float, times: float, logarithmic: bool
) -> None:
    drawn = ElementTree.fromstring(svg.svg(10, 10, [svg.text_element(0, 0, text), svg.mark("star", 1, 1, "#000000")]))
    assert len(drawn) == 2
    scale = svg.Scale(low, low * times, 100.0, 0.0, logarithmic)
    ticks = scale.ticks()
    assert ticks == sorted(set(ticks))
    assert all(low * (1 - 1e-9) <= tick <= low * times * (1 + 1e-9) for tick in ticks)
    assert logarithmic or 1 <= len(ticks) <= 9
    assert scale(low) == pytest.approx(100.0)
    assert scale(low * times) == pytest.approx(0.0, abs=1e-6)
