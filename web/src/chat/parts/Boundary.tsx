import { Component, type ReactNode } from "react";

/** Keeps what one thing breaks from taking the rest along. What is shown in its place may try again with the next version of it. */
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
