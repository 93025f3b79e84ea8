/** A ref that focuses an element when it appears. */
export const focusAtFirst = (element: HTMLElement | null): void => element?.focus();
