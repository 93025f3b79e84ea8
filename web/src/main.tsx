import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/parts.css";
import "./styles/markdown.css";

// Boundaries show rendering errors in place of the broken part, so nothing is logged to the console.
createRoot(document.getElementById("root")!, { onCaughtError: () => {} }).render(<StrictMode><App /></StrictMode>);
