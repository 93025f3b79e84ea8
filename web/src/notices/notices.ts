// Notifications about the user's conversations. A service worker shows them (public/ui/push.js): when the gateway sends a push message,
// also with the page closed, or when an open page passes on what it hears.

import { base, call, theLive } from "../gateway";
import { open } from "../route";
import { Store } from "../store";
import { scope, wantsNotices } from "./switch";

/**
 * How far notifications work in this browser: "push" also with the page closed, "page" only while it is open, since the browser has no
 * push service.
 */
export type Reach = "unsupported" | "insecure" | "denied" | "off" | "page" | "push";

export interface Notices { reach: Reach; isBusy: boolean; error: string }

/** Decides what is possible, from the browser's abilities. */
export function possible(isSecure: boolean, isSupported: boolean, permission: NotificationPermission | undefined): "unsupported" | "insecure" | "denied" | "off" {
  if (!isSecure) return "insecure";
  if (!isSupported) return "unsupported";
  return permission === "denied" ? "denied" : "off";
}

const present = () => possible(window.isSecureContext, "Notification" in window && "serviceWorker" in navigator, globalThis.Notification?.permission);

export const notices = new Store<Notices>({ reach: present(), isBusy: false, error: "" });

/** The time after which the frame that registers the worker has failed. Milliseconds. */
const patience = 30_000;

// The page's policy forbids it to register a worker, so a frame with its own policy does.
function register(): Promise<void> {
  const frame = document.createElement("iframe");
  frame.src = `${base}/ui/frames/worker.html`;
  frame.hidden = true;
  return new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the service worker can't be loaded")), patience);
    const receive = (e: MessageEvent<{ type?: string; error?: string }>) => {
      if (e.source !== frame.contentWindow || e.data.type !== "worker") return;
      removeEventListener("message", receive);
      clearTimeout(timer);
      if (e.data.error) reject(new Error(e.data.error));
      else resolve();
    };
    addEventListener("message", receive);
    document.body.append(frame);
  }).finally(() => frame.remove());
}

const bytes = (key: string) => Uint8Array.from(atob(key.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const isSame = (a: ArrayBuffer | null, b: Uint8Array) => a !== null && a.byteLength === b.byteLength && new Uint8Array(a).every((x, i) => x === b[i]);

// subscribe returns whether the browser can get push messages of this gateway.
async function subscribe(registration: ServiceWorkerRegistration): Promise<boolean> {
  const { publicKey } = await call<{ publicKey: string }>("api/notifications");
  const key = bytes(publicKey);
  let subscription: PushSubscription | null;
  try {
    subscription = await registration.pushManager.getSubscription();
    if (subscription && !isSame(subscription.options.applicationServerKey, key)) {
      await subscription.unsubscribe(); // the gateway has another key now
      subscription = null;
    }
    subscription ??= await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  } catch {
    return false; // no push service, or it can't be reached
  }
  await call("api/notifications", { method: "POST", json: subscription.toJSON() });
  return true;
}

let leave: (() => void) | undefined;

// begin makes the worker ready, and passes on what this page hears if the browser has no push service.
async function begin(): Promise<void> {
  await register();
  const registration = await navigator.serviceWorker.getRegistration(scope);
  if (!registration) throw new Error("the service worker is missing");
  const isPushed = await subscribe(registration);
  leave?.();
  const leaveEvents = isPushed ? undefined : theLive().on("notice", (n) => registration.active?.postMessage(n));
  const receive = (e: MessageEvent<{ type?: string; conversation?: string }>) => {
    if (e.data.type === "open" && e.data.conversation) open(e.data.conversation);
  };
  navigator.serviceWorker.addEventListener("message", receive);
  navigator.serviceWorker.startMessages();
  leave = () => {
    leaveEvents?.();
    navigator.serviceWorker.removeEventListener("message", receive);
  };
  notices.change((n) => ({ ...n, reach: isPushed ? "push" : "page" }));
}

async function attempt(step: () => Promise<void>): Promise<void> {
  notices.change((n) => ({ ...n, isBusy: true, error: "" }));
  try {
    await step();
  } catch (err) {
    notices.change((n) => ({ ...n, error: err instanceof Error ? err.message : String(err) }));
  } finally {
    notices.change((n) => ({ ...n, isBusy: false }));
  }
}

/** Asks the user's permission, and begins to notify. */
export const turnOn = (): Promise<void> => attempt(async () => {
  await Notification.requestPermission();
  if (Notification.permission !== "granted") {
    notices.change((n) => ({ ...n, reach: present() }));
    return;
  }
  await begin();
  wantsNotices.set(true);
});

/** Ends notifications in this browser. */
export const turnOff = (): Promise<void> => attempt(release);

/** Ends notifications in this browser. If the gateway can't be reached, it throws. */
export async function release(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration(scope);
  const subscription = await registration?.pushManager?.getSubscription();
  if (subscription) {
    await call("api/notifications", { method: "DELETE", json: { endpoint: subscription.endpoint } });
    await subscription.unsubscribe();
  }
  await registration?.unregister();
  leave?.();
  leave = undefined;
  wantsNotices.set(false);
  notices.change((n) => ({ ...n, reach: present() }));
}

/** Continues after the page was loaded. Sending the subscription again renews it. */
export async function resume(): Promise<void> {
  if (present() === "off" && Notification.permission === "granted") await attempt(begin);
}
