// Drives @wecom/aibot-node-sdk: connects to LEAT_URL, answers each message, and prints what it received and got as JSON when a
// person writes "stop".
import { readFileSync } from 'node:fs'
import AiBot from '@wecom/aibot-node-sdk'

const { botId, secret } = JSON.parse(readFileSync(0, 'utf8'))
const quiet = { debug() {}, info() {}, warn() {}, error() {} }
const bot = new AiBot.WSClient({ botId, secret, wsUrl: process.env.LEAT_URL, heartbeatInterval: 100, maxReconnectAttempts: 0, logger: quiet })
const received = []
const errors = []
const attempt = (what) => what.then((f) => f.errcode, (e) => e.errcode ?? String(e.message ?? e))

bot.on('message', async (frame) => {
  const m = frame.body
  received.push({ id: m.msgid, chat: m.chatid, from: m.from.userid, type: m.msgtype, text: m.text?.content })
  if (m.text?.content === 'hello') {
    errors.push(await attempt(bot.replyStream(frame, 's1', 'Hel')))
    errors.push(await attempt(bot.replyStream(frame, 's1', 'Hello **Ann**', true)))
    errors.push(await attempt(bot.sendMessage('ann', { msgtype: 'markdown', markdown: { content: 'later' } })))
    errors.push(await attempt(bot.sendMessage('bob', { msgtype: 'markdown', markdown: { content: 'later' } })))
    const media = await bot.uploadMedia(Buffer.alloc(600 * 1024, 'x'), { type: 'file', filename: 'a.txt' })
    errors.push(await attempt(bot.sendMediaMessage('ann', 'file', media.media_id)))
  }
  if (m.file) {
    const { buffer, filename } = await bot.downloadFile(m.file.url, m.file.aeskey)
    received.at(-1).text = buffer.toString()
    received.at(-1).name = filename
  }
  if (m.text?.content === 'stop') {
    console.log(JSON.stringify({ received, errors }))
    process.exit(0)
  }
  if (m.text?.content !== 'stop') errors.push(await attempt(bot.sendMessage('ann', { msgtype: 'markdown', markdown: { content: 'done' } })))
})
bot.connect()
