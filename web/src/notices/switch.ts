// Whether the user wants notifications in this browser. The code that shows them is loaded only then.

import { base } from "../gateway";
import { persistent } from "../store";

/** Signing out deletes it, and so does another user's sign-in. */
export const wantsNotices = persistent<boolean>("notify", false, (v): v is boolean => typeof v === "boolean");

/** The scope of the service worker. It has only static files, so that the worker controls no page. */
export const scope = `${base}/ui/`;

/**
 * Continues to notify the signed-in user, if the user wants that. Otherwise a subscription that is left in this browser is another
 * user's, and is ended.
 */
export async function resumeNotices(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration(scope);
  if (!wantsNotices.get() && !registration) return;
  const { resume, release } = await import("./notices");
  await (wantsNotices.get() ? resume() : release());
}
