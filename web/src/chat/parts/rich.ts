// What is loaded together for rich results of tools.

export { App } from "./App";
export { Output } from "./Output";
