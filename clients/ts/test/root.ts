import { fileURLToPath } from "node:url";

/** The folder of the whole project; the compiled tests are in clients/ts/build/test. */
export const root = fileURLToPath(new URL("../../../..", import.meta.url));
