// What the page uses of React, by Preact, which has a quarter of its size. The build replaces the package react by this file.

import { useCallback, useLayoutEffect, useRef } from "preact/compat";

export {
  Component, Fragment, lazy, memo, StrictMode, Suspense, useCallback, useDeferredValue, useEffect, useId, useLayoutEffect, useMemo,
  useReducer, useRef, useState, useSyncExternalStore,
} from "preact/compat";

/** Returns a function that never changes and calls the newest fn. */
export function useEffectEvent<A extends unknown[], R>(fn: (...args: A) => R): (...args: A) => R {
  const newestRef = useRef(fn);
  useLayoutEffect(() => {
    newestRef.current = fn;
  });
  return useCallback((...args: A) => newestRef.current(...args), []);
}
