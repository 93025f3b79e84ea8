import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";

import { root } from "./root.js";

const scratch = mkdtempSync(join(tmpdir(), "leat-ts-"));
process.on("exit", () => rmSync(scratch, { recursive: true, force: true }));

const programs = new Map<string, string>();

/** Builds a program of this project and returns its path; LEAT_BIN names an existing gateway. */
function program(pkg: string): string {
  const override = pkg === "./cmd/leat" ? process.env["LEAT_BIN"] : process.env["LEAT_BADPROXY"];
  if (override) return override;
  let path = programs.get(pkg);
  if (!path) {
    path = join(scratch, pkg.replace(/.*\//, ""));
    execFileSync("go", ["build", "-o", path, pkg], { cwd: root, stdio: "inherit" });
    programs.set(pkg, path);
  }
  return path;
}

/** Returns a program's next line that matches. */
async function line(lines: Interface, pattern: RegExp): Promise<RegExpMatchArray> {
  for await (const l of lines) {
    const m = pattern.exec(l);
    if (m) return m;
  }
  throw new Error(`the program ended without a line like ${pattern}`);
}

async function exited(p: ChildProcess): Promise<void> {
  if (p.exitCode === null && p.signalCode === null) await new Promise((resolve) => p.once("exit", resolve));
}

export interface GatewayOptions { agents?: string; token?: string; port?: number; data?: string; env?: Record<string, string> }

/** A separate gateway on a free port, which can be restarted on the same data. */
export class Gateway {
  private constructor(private readonly process: ChildProcess, readonly url: string, readonly options: GatewayOptions) {}

  static async start(options: GatewayOptions = {}): Promise<Gateway> {
    const data = options.data ?? mkdtempSync(join(scratch, "data-"));
    const p = spawn(program("./cmd/leat"), ["serve", "--listen", `127.0.0.1:${options.port ?? 0}`, "--data", data], {
      env: { ...process.env, LEAT_AGENTS: options.agents ?? "demo?speed=0", LEAT_API_TOKEN: options.token ?? "", ELIZA_API_TOKEN: "", LEAT_CONFIG: "", LEAT_DRAIN: "1s", LEAT_LOG_LEVEL: "error", ...options.env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines = createInterface({ input: p.stdout });
    const url = (await line(lines, /listens on (http:\/\/\S+)/))[1]!;
    p.stdout.resume();
    return new Gateway(p, url, { ...options, data });
  }

  get host(): string {
    return new URL(this.url).host;
  }

  async stop(): Promise<void> {
    this.process.kill("SIGTERM");
    await exited(this.process);
  }

  /** Kills it, and starts it again at the same address. */
  async restart(): Promise<Gateway> {
    this.process.kill("SIGKILL");
    await exited(this.process);
    return Gateway.start({ ...this.options, port: Number(new URL(this.url).port) });
  }

  async call(method: string, path: string, body?: BodyInit | null): Promise<Response> {
    const headers: Record<string, string> = this.options.token ? { Authorization: `Bearer ${this.options.token}` } : {};
    const init: RequestInit & { duplex?: "half" } = { method, headers };
    if (body instanceof ReadableStream) init.duplex = "half";
    if (body !== undefined) init.body = body;
    const res = await fetch(this.url + path, init);
    if (!res.ok) throw new Error(`${method} ${path}: ${res.status} ${await res.text()}`);
    return res;
  }

  /** Pushes an agent's stream while the text is generated; the turn has ended when this returns. */
  async push(conversation: string, chunks: AsyncIterable<string> | Iterable<string>): Promise<void> {
    async function* lines(): AsyncGenerator<object> {
      for await (const text of chunks) yield { type: "chunk", text };
      yield { type: "done" };
    }
    const last = await this.pushLines(conversation, "eliza-actions", lines());
    if (last.outcome !== "completed") throw new Error(JSON.stringify(last));
  }

  /** Pushes a stream of JSON lines, and returns the outcome of its turn. */
  async pushLines(conversation: string, dialect: string, lines: AsyncIterable<object> | Iterable<object>): Promise<{ outcome?: string; error?: string }> {
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      async start(c) {
        for await (const line of lines) c.enqueue(encoder.encode(JSON.stringify(line) + "\n"));
        c.close();
      },
    });
    const res = await this.call("POST", `/api/conversations/${encodeURIComponent(conversation)}/turns?dialect=${dialect}`, body);
    return JSON.parse((await res.text()).trim().split("\n").at(-1)!) as { outcome?: string; error?: string };
  }

  /** Creates a conversation without the tested client. */
  async create(): Promise<string> {
    const res = await this.call("POST", "/api/conversations", "{}");
    return ((await res.json()) as { conversation: { id: string } }).conversation.id;
  }
}

/** A proxy in front of a gateway that imitates a bad network. */
export class BadNetwork {
  private constructor(private readonly process: ChildProcess, private readonly lines: AsyncIterator<string>, readonly url: string) {}

  static async start(target: string, faults: { mean: number; seed?: number }): Promise<BadNetwork> {
    const p = spawn(program("./test/badnet/badproxy"), ["-mean", String(faults.mean), "-seed", String(faults.seed ?? 1), target], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    const lines = createInterface({ input: p.stdout })[Symbol.asyncIterator]();
    const address = await lines.next();
    return new BadNetwork(p, lines, `http://${address.value as string}`);
  }

  async cuts(): Promise<number> {
    this.process.stdin!.write("\n");
    return Number((await this.lines.next()).value);
  }

  /** Ends the faults: later connections are not disturbed. */
  async mend(): Promise<void> {
    this.process.stdin!.write("mend\n");
    await this.lines.next();
  }

  async stop(): Promise<void> {
    this.process.stdin!.end();
    await exited(this.process);
  }
}
