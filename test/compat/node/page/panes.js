// The picture of all clients, and the chat of Telegram in it. The fake of Telegram has messages as its API got them, and no client, so this draws them.

const escape = (text) => text.replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);

const tags = { bold: 'b', italic: 'i', code: 'code', pre: 'pre', underline: 'u', strikethrough: 's', blockquote: 'blockquote', expandable_blockquote: 'blockquote' };

// formatted returns a text with its entities, whose offsets count UTF-16 units, as HTML.
function formatted(text, entities) {
  const marks = entities.filter((e) => tags[e.type]).flatMap((e) => [
    { at: e.offset, order: 1, size: -e.length, tag: `<${tags[e.type]}>` }, { at: e.offset + e.length, order: 0, size: -e.offset, tag: `</${tags[e.type]}>` },
  ]).sort((a, b) => a.at - b.at || a.order - b.order || a.size - b.size);
  let html = '';
  let at = 0;
  for (const mark of marks) {
    html += escape(text.slice(at, mark.at)) + mark.tag;
    at = mark.at;
  }
  return html + escape(text.slice(at));
}

// chatAsHTML draws the messages of a chat.
export const chatAsHTML = (messages) => `<!doctype html><style>
  body { font: 14px/1.4 system-ui, sans-serif; background: #cfdcc4; margin: 0; padding: 12px; display: flex; flex-direction: column; gap: 6px; min-height: calc(100vh - 24px); justify-content: end; }
  article { max-width: 86%; padding: 6px 10px; border-radius: 12px; background: #fff; align-self: start; white-space: pre-wrap; overflow-wrap: anywhere; }
  article.own { background: #effdde; align-self: end; }
  pre { font-size: 9.5px; }
  pre, blockquote { margin: 2px 0; padding: 2px 8px; border-left: 3px solid #6ab2f2; background: #f3f7fb; white-space: pre-wrap; }
</style>${messages.map((m) => `<article class="${m.bot ? '' : 'own'}">${formatted(m.text, m.entities)}</article>`).join('')}`;

// montage returns a page with pictures, as base64, and their titles: two in the first row and the others in the second.
export const montage = (panes) => `<!doctype html><style>
  body { margin: 24px; background: #e8eaee; font: 600 15px/1 system-ui, sans-serif; color: #333; }
  main { display: grid; grid-template-columns: repeat(6, 1fr); gap: 20px; }
  figure { margin: 0; grid-column: span 2; }
  figure:nth-child(-n+2) { grid-column: span 3; }
  figcaption { padding: 8px 2px 10px; }
  img { display: block; width: 100%; border-radius: 8px; box-shadow: 0 2px 10px #0003; }
</style><main>${Object.entries(panes).map(([title, png]) => `<figure><figcaption>${escape(title)}</figcaption><img src="data:image/png;base64,${png}"></figure>`).join('')}</main>`;
