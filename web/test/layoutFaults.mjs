/**
 * Runs in a page. Returns what is wrong with the layout: a page wider than the window, a control that is out of reach or has no size, and
 * text that is cut off without an ellipsis.
 */
export function faultsOfLayout() {
  const faults = [];
  const nameOf = (e) => `${e.tagName.toLowerCase()}${[...e.classList].map((c) => `.${c}`).join("")} “${(e.getAttribute("aria-label") ?? e.innerText ?? "").trim().slice(0, 40)}”`;
  if (document.documentElement.scrollWidth > innerWidth) faults.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  const isScroller = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX);
  const isShown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !e.closest("[inert], .unseen, [hidden]");
  for (const e of document.querySelectorAll("button, a[href], input, textarea, select")) {
    if (!isShown(e) || e.type === "file" || e.disabled) continue;
    const box = e.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) continue; // inputs that their label stands for
    let scrolls = false;
    for (let p = e.parentElement; p; p = p.parentElement) scrolls ||= isScroller(p) && p.scrollWidth > p.clientWidth;
    if (!scrolls && (box.left < -1 || box.right > innerWidth + 1)) faults.push(`${nameOf(e)} is out of reach: ${Math.round(box.left)} to ${Math.round(box.right)}`);
  }
  for (const e of document.querySelectorAll("body *")) {
    const style = getComputedStyle(e);
    if (!isShown(e) || e.scrollWidth <= e.clientWidth + 1 || e.clientWidth === 0) continue;
    if (style.overflowX === "hidden" && style.textOverflow !== "ellipsis" && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) faults.push(`${nameOf(e)} is cut off`);
  }
  return faults;
}
