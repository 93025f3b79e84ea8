// An agent for the users of Letta Code, as a plugin of Leat. The first word of a message names what it does.
import { createInterface } from 'node:readline';

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const text = (turn, t) => say({ type: 'text', turn, text: t });
const end = (turn) => say({ type: 'turn.end', turn, outcome: 'completed' });

// What an answer continues and what a stop ends, by turn.
const answers = new Map();
const stops = new Map();

// begin begins a message with a text and a call of a tool. part makes an event about one of them.
function begin(turn, tool, input) {
  const part = (type, id, rest) => say({ type, turn, message: 'a', part: id, ...rest });
  say({ type: 'message.start', turn, message: 'a', role: 'assistant' });
  part('part.start', 't', { kind: 'text' });
  part('part.append', 't', { text: 'Let me look. ' });
  part('part.start', 'c', { kind: 'tool', name: tool, call: 'c' });
  part('part.append', 'c', { field: 'input', text: JSON.stringify(input) });
  return part;
}

const deeds = {
  tools(turn) {
    const part = begin(turn, 'lookup', { city: 'Graz' });
    part('part.append', 'c', { field: 'output', text: 'clear sky' });
    part('part.update', 'c', { state: 'done' });
    part('part.end', 'c');
    part('part.append', 't', { text: 'It is sunny.' });
    end(turn);
  },
  fail(turn) {
    text(turn, 'so far');
    say({ type: 'turn.end', turn, outcome: 'failed', error: { code: 'overloaded_error', message: 'The model is busy.' } });
  },
  // The tool has the name of one of Letta Code's own, which must not run in its place.
  approve(turn, word) {
    const part = begin(turn, 'Bash', { command: `touch ran-${word}` });
    say({ type: 'turn.wait', turn, request: { id: 'ok', kind: 'approval', tool: 'Bash', part: 'c', prompt: `May I touch ${word}?` } });
    answers.set(turn, (a) => {
      part('part.update', 'c', { state: a.decision === 'approve' ? 'done' : 'denied' });
      part('part.end', 'c');
      part('part.append', 't', { text: `${word}: ${a.decision} ${a.text ?? ''}` });
      end(turn);
    });
  },
  choose(turn, word) {
    say({ type: 'turn.wait', turn, request: { id: 'q', kind: 'input', prompt: `Which colour for ${word}?`, options: ['red', 'blue'] } });
    answers.set(turn, (a) => { text(turn, `${word} is ${a.decision || a.text}.`); end(turn); });
  },
  name(turn, word) {
    say({ type: 'turn.wait', turn, request: { id: 'q', kind: 'input', prompt: `What is the name of ${word}?` } });
    answers.set(turn, (a) => { text(turn, `${word} is called ${a.decision || a.text}.`); end(turn); });
  },
  // The tool of Letta Code itself, which the agent may call because it was offered.
  shell(turn, word, tools) {
    const tool = tools?.find((t) => t.name === 'Bash');
    if (!tool?.parameters?.properties?.command) {
      text(turn, 'There is no shell.');
      end(turn);
      return;
    }
    const data = { command: `touch made-${word} && echo $((6 * 7))`, description: 'Compute' };
    say({ type: 'turn.wait', turn, request: { id: 'shell', kind: 'input', tool: 'Bash', data } });
    answers.set(turn, (a) => { text(turn, `shell: ${a.decision ?? ''} ${a.text ?? ''}.`); end(turn); });
  },
  forever(turn) {
    let n = 0;
    const timer = setInterval(() => text(turn, `word${++n} `), 50);
    stops.set(turn, () => clearInterval(timer));
  },
};

createInterface({ input: process.stdin }).on('line', (raw) => {
  const line = JSON.parse(raw);
  if (line.type === 'hello') say({ type: 'ready', protocol: 1 });
  if (line.type === 'turn') {
    const [deed, word] = line.message.text.split(' ');
    if (deeds[deed]) deeds[deed](line.turn, word, line.tools);
    else {
      text(line.turn, `re: ${line.message.text}`);
      end(line.turn);
    }
  }
  if (line.type === 'answer') answers.get(line.turn)?.(line.answer);
  if (line.type === 'cancel') stops.get(line.turn)?.();
});
