// The reading positions in conversations that the user has left, as long as the page is open. A reader who had left the end returns
// to the same position.

import type { Spot } from "./scroll";
import type { Stretch } from "./window";

export interface Place {
  spot: Spot;
  /** The range of messages that was rendered. */
  stretch: Stretch;
  /** The newest message when the reader left the end. */
  newest: string | undefined;
}

/** The number of stored positions. The client doesn't keep the messages of older ones in memory. */
const maxPlaces = 50;

const places = new Map<string, Place>();

/** Stores the position in a conversation, or deletes it. */
export function saveBookmark(conversation: string, place: Place | undefined): void {
  places.delete(conversation);
  if (!place) return;
  places.set(conversation, place);
  if (places.size > maxPlaces) places.delete(places.keys().next().value!);
}

/** Returns the stored position, if its message is still loaded. */
export function bookmark(conversation: string, messages: readonly { readonly id: string }[]): Place | undefined {
  const place = places.get(conversation);
  return place && messages.some((m) => m.id === place.spot.message) ? place : undefined;
}
