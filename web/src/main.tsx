import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { App } from "./App";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/chat.css";
import "./styles/parts.css";
import "./styles/markdown.css";

// What one part breaks is shown in its place; the console stays silent.
createRoot(document.getElementById("root")!, { onCaughtError: () => {} }).render(<StrictMode><App /></StrictMode>);
