// Makes the icons of an installed page from public/ui/icon.svg: node icons/render.mjs. The pictures in public/ui are committed.
//
// An installed page has an icon for launchers, in two sizes, and a maskable one: launchers cut it to their own shape, so its ground has
// no corners, and the drawing stays within the middle 80 percent. Apple's icon has no transparent corners either.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { browser, closeBrowser } from "../test/harness.mjs";

const source = readFileSync(new URL("../public/ui/icon.svg", import.meta.url), "utf8");
const ground = /<rect[^>]*fill="([^"]+)"/.exec(source)[1];

/** Draws the icon on a square; isSquare fills the corners, and scale is the size of the drawing. */
async function draw(name, size, { isSquare = false, scale = 1 } = {}) {
  const page = await (await browser()).newPage({ viewport: { width: size, height: size } });
  const edge = Math.round((size * (1 - scale)) / 2);
  const picture = source.replace("<svg ", `<svg width="${size - 2 * edge}" height="${size - 2 * edge}" style="display:block;position:absolute;left:${edge}px;top:${edge}px" `);
  await page.setContent(`<body style="margin:0;background:${isSquare ? ground : "transparent"}">${picture}`);
  await page.screenshot({ path: fileURLToPath(new URL(`../public/ui/${name}.png`, import.meta.url)), omitBackground: true });
  await page.close();
}

await draw("icon192", 192);
await draw("icon512", 512);
await draw("maskable512", 512, { isSquare: true, scale: 0.8 });
await draw("touch180", 180, { isSquare: true, scale: 0.9 });
await closeBrowser();
