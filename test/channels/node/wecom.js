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

const answers = []
bot.on('message', (frame) => {
  const m = frame.body
  received.push({ id: m.msgid, chat: m.chatid, from: m.from.userid, type: m.msgtype, text: m.text?.content })
  if (m.text?.content !== 'stop') {
    answers.push(answer(frame))
    return
  }
  // A person may see a message of the bot before the bot gets its acknowledgement.
  void Promise.all(answers).then(() => {
    console.log(JSON.stringify({ received, errors }))
    process.exit(0)
  })
})

async function answer(frame) {
  const m = frame.body
  const mine = received.at(-1)
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
    mine.text = buffer.toString()
    mine.name = filename
  }
  errors.push(await attempt(bot.sendMessage('ann', { msgtype: 'markdown', markdown: { content: 'done' } })))
}
bot.connect()
