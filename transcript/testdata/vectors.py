#!/usr/bin/env python3
"""Writes vectors.json from the executable model of the rules.

Usage: vectors.py DIR_OF_feed_model.py > vectors.json

It plays the model's own random schedules, and writes down what each reader got and what it held in the end. Run it again
only when the model's rules have changed.
"""
import json
import sys

sys.path.insert(0, sys.argv[1])
import feed_model as model

# The first schedules, and of the next ones those in which a reader pages back.
PLAIN, PAGED = 24, 16


def crc32c(text):
    crc = 0xFFFFFFFF
    for byte in text.encode():
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


model.crc = crc32c

TYPES = dict(madd='message.add', mupd='message.update', ms='message.start', me='message.end', tq='turn.queue',
             ts='turn.start', tu='turn.update', tw='turn.wait', tr='turn.resume', te='turn.end', ps='part.start',
             ap='part.append', rp='part.replace', pu='part.update', pe='part.end', cu='conversation.update',
             tc='conversation.truncate')
ROLES = dict(u='user', a='assistant')


def keys(k):
    out = {}
    for key, value in k.items():
        if key == 'upstream':
            out['upstream'] = {'run': value}
        elif key == 'url':
            out['media'] = {'url': value}
        elif key == 'meta':
            out['metadata'] = {'meta': value}
        else:
            out[key] = value
    return out


def event(e):
    t = e['t']
    out = {'seq': e['seq'], 'type': TYPES[t]}
    if 'fs' in e and e['fs'] != e['seq']:
        out['first'] = e['fs']
    for short, name in (('turn', 'turn'), ('m', 'message'), ('p', 'part'), ('kind', 'kind'), ('state', 'state')):
        if e.get(short):
            out[name] = e[short]
    if t == 'madd':
        out.update(role=ROLES[e['role']], parts=[{'id': 'p0', 'kind': 'text', 'text': e['text']}])
    elif t == 'ms':
        out['role'] = 'assistant'
    elif t == 'ps' and e['join']:
        out['join'] = e['join']
    elif t in ('ap', 'rp'):
        if e['f'] != 'text':
            out['field'] = e['f']
        if t == 'ap':
            out['offset'] = e['off']
        out['text'] = e['x']
        if e.get('note', '').strip():
            out['note'] = e['note'].strip()
        if 'history' in e:
            out['history'] = e['history']
        if e.get('more'):
            out['more'] = True
    elif t in ('pu', 'tu', 'cu'):
        out.update(keys(e['k']))
    elif t == 'tw':
        out['request'] = {'id': e['req'], 'kind': 'approval'}
    elif t == 'tr':
        out['answer'] = {'id': e['req'], 'decision': 'approve'}
    elif t == 'te':
        out['outcome'] = e['o']
    elif t == 'pe':
        out['sums'] = {f: {'length': n, 'crc': crc} for f, (n, crc) in e['sums'].items()}
    return out


def message(mid, m):
    out = {'id': mid, 'role': ROLES[m['role']], 'parts': []}
    if m['turn']:
        out['turn'] = m['turn']
    if m['state']:
        out['state'] = m['state']
    if m['ended']:
        out['ended'] = True
    for pid, p in m['parts'].items():
        part = {'id': pid, 'kind': p['kind']}
        if p['join']:
            part['join'] = p['join']
        part.update(keys(p['u']))
        if p['ended']:
            part['ended'] = True
        part.update({f: x for f, x in p['f'].items() if x})
        if p['h']:
            part['history'] = list(p['h'])
        out['parts'].append(part)
    return out


def turn(tid, t):
    state, _, outcome = t['st'].partition(':')
    if state in ('running', '?') and t['w']:
        state = 'waiting'
    out = {'id': tid, 'state': 'running' if state == '?' else state}
    if outcome:
        out['outcome'] = outcome
    out.update(keys(t['u']))
    if t['w']:
        out['requests'] = [{'id': r, 'kind': 'approval'} for r in t['w']]
    return out


def transcript(msgs, turns=None, conv=None, seq=None):
    out = {} if seq is None else {'seq': seq}
    out.update(keys(conv or {}))
    out['messages'] = [message(k, m) for k, m in msgs.items()]
    out['turns'] = [turn(k, t) for k, t in (turns or {}).items()]
    return out


class Recorder(list):
    """The model's trace: it tells when a reader has put a page in front."""

    def append(self, entry):
        if len(entry) > 1 and entry[1] == 'PAGE asof':
            reader = readers[entry[0]]
            page = {k: m for k, m in reader.F.msgs.items()
                    if k not in reader.before and m.get('asof') == entry[2]}
            reader.steps.append({'page': transcript(page, seq=entry[2]), 'before': next(iter(reader.before)), 'cursor': reader.cur[1]})


class Reader(model.Reader):
    def __init__(self, cfg):
        super().__init__(cfg)
        if not hasattr(self, 'steps'):
            self.steps = []
            readers.append(self)
        self.steps.append({'reset': True})

    def take(self, sn):
        self.steps.append({'snapshot': transcript(sn['msgs'], sn['turns'], sn['conv'], sn['seq'])})
        super().take(sn)

    def apply(self, e):
        if not self.steps or 'events' not in self.steps[-1]:
            self.steps.append({'events': []})
        self.steps[-1]['events'].append(event(e))
        super().apply(e)

    @property
    def F(self):
        return self.fold

    @F.setter
    def F(self, fold):
        self.fold = fold

    @property
    def first(self):
        return self._first

    @first.setter
    def first(self, first):
        self._first = first
        # What the reader holds now; a page comes before it.
        self.before = dict(getattr(self, 'held', {}))
        self.held = dict(self.fold.msgs)


model.Reader = Reader
vectors = []
seed = -1
paged = 0
while paged < PAGED:
    seed += 1
    readers = []
    bad, flags, log = model.run(seed, model.GOOD, model.r_len(seed), Recorder())
    assert not bad and not flags, (seed, bad, flags)
    if seed >= PLAIN:
        if not any('page' in step for reader in readers for step in reader.steps):
            continue
        paged += 1
    for i, reader in enumerate(readers):
        vectors.append({
            'name': f'{seed}/{i}',
            'steps': reader.steps,
            'want': transcript(reader.F.msgs, reader.F.turns, reader.F.conv),
        })
    vectors.append({
        'name': f'{seed}/log',
        'steps': [{'events': [event(e) for e in log.ev]}],
        'want': transcript(log.F.msgs, None, log.F.conv),
    })
print('[')
print(',\n'.join(json.dumps(v, ensure_ascii=False, separators=(',', ':')) for v in vectors))
print(']')
