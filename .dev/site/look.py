#!/usr/bin/python3
# SPDX-License-Identifier: MIT
#
# usage: look.py BROWSER PAGE WIDTH light|dark PICTURE
#
# Takes a picture of the first 2,400 lines of pixels of a page, as wide as a telephone's or a laptop's screen. A headless Chromium
# has no window that is narrower than 500 pixels, so the page stands in a frame of the width.
import pathlib
import subprocess
import sys
import tempfile

browser, page, width, scheme, picture = sys.argv[1:6]
height = 2400
with tempfile.TemporaryDirectory() as folder:
    frame = pathlib.Path(folder) / "frame.html"
    frame.write_text(f'<meta name="color-scheme" content="light dark"><body style="margin:0"><iframe src="file://{page}" '
                     f'style="border:0;width:{width}px;height:{height}px"></iframe>', encoding="utf-8")
    # 0 is dark, 1 is light.
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files",
         f"--user-data-dir={folder}/profile", f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
         f"--window-size={max(int(width), 500)},{height}", f"--screenshot={picture}", frame.as_uri()],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
