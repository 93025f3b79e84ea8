import "./style.css";

import { Client, LiveEvents } from "@leat/client";
import { LeatProvider } from "@leat/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";

// Called before each connection, and before a token expires.
async function token(): Promise<string> {
  const response = await fetch("/token");
  if (!response.ok) throw new Error(`no token: ${response.status} ${await response.text()}`);
  return response.text();
}

const client = new Client({ token });
const live = new LiveEvents({ token });

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <LeatProvider client={client} live={live}><App /></LeatProvider>
  </StrictMode>,
);
