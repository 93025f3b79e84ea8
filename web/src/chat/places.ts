// The reading positions in conversations that the user has left, as long as the page is open. A reader who had left the end returns
// to the same position.

import type { Spot } from "./scroll";
import type { Stretch } from "./window";

export interface Place {
  spot: Spot;
  /** What was drawn, of which a reader comes back to the same. */
  stretch: Stretch;
  /** The newest message when they left the end. */
  newest: string | undefined;
}

/** How many are kept: of older ones the client lets the messages go. */
const maxPlaces = 50;

const places = new Map<string, Place>();

/** Keeps a place, or none. */
export function saveBookmark(conversation: string, place: Place | undefined): void {
  places.delete(conversation);
  if (!place) return;
  places.set(conversation, place);
  if (places.size > maxPlaces) places.delete(places.keys().next().value!);
}

/** The place in a conversation, where its message is still held. */
export function bookmark(conversation: string, messages: readonly { readonly id: string }[]): Place | undefined {
  const place = places.get(conversation);
  return place && messages.some((m) => m.id === place.spot.message) ? place : undefined;
}
