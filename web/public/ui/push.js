// The service worker of notifications. It shows notices and opens conversations, and does nothing else: it serves no page from a cache.

const base = new URL("..", location.href).href;

// The open pages of this gateway. Its scope is only the folder of this file, so it controls none of them.
async function openPages() {
  const all = await clients.matchAll({ type: "window", includeUncontrolled: true });
  return all.filter((p) => p.frameType === "top-level" && p.url.startsWith(base));
}

const words = { completed: "The answer is complete.", failed: "The answer has failed.", interrupted: "The answer was interrupted." };

// Safari withdraws the permission if a message shows nothing; the others allow that while a page is visible.
const mustShow = /AppleWebKit/.test(navigator.userAgent) && !/Chrom/.test(navigator.userAgent);

async function show(notice) {
  if (!mustShow && (await openPages()).some((p) => p.visibilityState === "visible")) return;
  await registration.showNotification(notice.title || "Leat", {
    body: notice.kind === "asked" ? "Waiting for your answer." : words[notice.outcome] ?? "The turn has ended.",
    tag: notice.conversation, // a newer notice replaces an older one
    renotify: notice.kind === "asked",
    icon: new URL("icon192.png", location.href).href,
    data: { conversation: notice.conversation },
  });
}

async function open(conversation) {
  const pages = await openPages();
  const page = pages.find((p) => p.visibilityState === "visible") ?? pages[0];
  if (!page) return void (await clients.openWindow(`${base}#/c/${encodeURIComponent(conversation)}`));
  page.postMessage({ type: "open", conversation });
  await page.focus();
}

self.addEventListener("install", () => void skipWaiting());
self.addEventListener("push", (e) => e.waitUntil(show(e.data.json())));
self.addEventListener("message", (e) => e.waitUntil(show(e.data))); // from a page without a push service
self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(open(e.notification.data.conversation));
});
