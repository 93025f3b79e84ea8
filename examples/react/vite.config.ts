import react from "@vitejs/plugin-react";
import { SignJWT } from "jose";
import { type Connect, defineConfig, type Plugin } from "vite";

const gateway = process.env.LEAT_URL ?? "http://127.0.0.1:31337";
const secret = process.env.LEAT_USERS_SECRET ?? "";

// In a real application this is a route of its server, which knows the signed-in user. This example signs every visitor in as ann.
const token: Connect.NextHandleFunction = (_, response) => {
  if (secret === "") {
    response.end(); // the gateway has no users
    return;
  }
  new SignJWT({ sub: "ann" }).setProtectedHeader({ alg: "HS256" }).setExpirationTime("10 minutes").sign(new TextEncoder().encode(secret)).then(
    (jwt) => response.end(jwt),
    (err: unknown) => {
      response.statusCode = 500;
      response.end(String(err));
    },
  );
};

const signIn: Plugin = {
  name: "sign-in",
  configureServer: (server) => void server.middlewares.use("/token", token),
  configurePreviewServer: (server) => void server.middlewares.use("/token", token),
};

// The page talks to the gateway under its own address, so neither CORS nor the gateway's address is its concern.
// Conversations are below /api; /ws has the live events, which keep the list of conversations up to date.
const proxy = { "/api": { target: gateway, ws: true }, "/ws": { target: gateway, ws: true } };

export default defineConfig({ plugins: [react(), signIn], server: { proxy }, preview: { proxy } });
