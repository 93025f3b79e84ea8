// Drives whatsapp-api-js: sends to the API at LEAT_URL, and parses the webhooks of standard input. The results are printed as JSON.
import { readFileSync } from 'node:fs'
import { WhatsAppAPI } from 'whatsapp-api-js'
import { Document, Image, Text } from 'whatsapp-api-js/messages'

const { number, person, id, webhooks } = JSON.parse(readFileSync(0, 'utf8'))
const base = process.env.LEAT_URL
const api = new WhatsAppAPI({
  token: 'token',
  appSecret: 'secret',
  webhookVerifyToken: 'verify',
  v: 'v24.0',
  ponyfill: { fetch: (url, options) => fetch(String(url).replace('https://graph.facebook.com', base), options) },
})

const received = []
api.on.message = ({ message, name, from }) => received.push({ from, name, id: message.id, type: message.type, content: message[message.type] })
api.on.status = ({ status, id, error }) => received.push({ status, id, code: error?.code })
for (const { body, signature } of webhooks) {
  await api.post(JSON.parse(body), body, signature)
}

const to = { phone: person }
const upload = async (name, type, text) => {
  const form = new FormData()
  form.set('file', new Blob([text], { type }), name)
  form.set('messaging_product', 'whatsapp')
  return (await api.uploadMedia(number, form)).id
}
const text = await api.sendMessage(number, to, new Text('*Hello* 👍'), id)
const read = await api.markAsRead(number, id, 'text')
const picture = await api.sendMessage(number, to, new Image(await upload('a.png', 'image/png', 'png'), true, 'A picture'))
const file = await upload('b.txt', 'text/plain', 'text')
const document = await api.sendMessage(number, to, new Document(file, true, 'A text', 'b.txt'))
const stored = await api.retrieveMedia(file, number)
const content = await (await api.fetchMedia(stored.url)).text()
const stranger = await api.sendMessage(number, { phone: '1999' }, new Text('hi'))
console.log(JSON.stringify({ received, text, read, picture, document, stored, content, stranger }))
