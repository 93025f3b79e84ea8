// A proxy of TCP whose connections break after some bytes.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

// cuttingProxy starts a proxy for a gateway. budget returns after how many bytes of the gateway a new connection breaks; until it is set, none
// does.
export async function cuttingProxy(url) {
  const target = new URL(url);
  const sockets = new Set();
  const proxy = { cuts: 0, budget: () => Infinity, reset: () => { for (const s of sockets) s.destroy(); } };
  const server = createServer((client) => {
    const gateway = connect(Number(target.port), target.hostname);
    for (const s of [client, gateway]) {
      sockets.add(s);
      s.on('error', () => {}); // connections are meant to break
      s.on('close', () => { sockets.delete(s); client.destroy(); gateway.destroy(); });
    }
    client.pipe(gateway);
    let left = proxy.budget();
    gateway.on('data', (b) => {
      client.write(b.subarray(0, left));
      if (b.length < left) { left -= b.length; return; }
      proxy.cuts++;
      client.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy.base = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () => { proxy.reset(); server.close(); };
  return proxy;
}
