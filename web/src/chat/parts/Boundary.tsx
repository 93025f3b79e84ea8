import { Component, type ReactNode } from "react";

/**
 * Shows a replacement for a component that can't render, so that the rest of the page stays. A new value of the prop "of" renders
 * the component again.
 */
export class Boundary extends Component<{ of: unknown; children: ReactNode; broken: (message: string) => ReactNode }, { why?: string; of?: unknown }> {
  override state: { why?: string; of?: unknown } = {};

  static getDerivedStateFromError(err: unknown) {
    return { why: err instanceof Error ? err.message : String(err) };
  }

  static getDerivedStateFromProps(props: { of: unknown }, state: { why?: string; of?: unknown }) {
    return props.of === state.of ? null : { of: props.of, why: undefined };
  }

  override render() {
    return this.state.why === undefined ? this.props.children : this.props.broken(this.state.why);
  }
}
