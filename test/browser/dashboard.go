package browser

import "strconv"

// JavaScript expressions about the dashboard's state, for Wait and Eval.
const (
	// Connected is true while the dashboard is connected to the gateway.
	Connected = `document.querySelector(".connection")?.dataset.state === "connected"`
	// Log is the visible text of the conversation's messages, one message after another.
	Log = `[...document.querySelectorAll(".log article.message")].map((a) => a.innerText).join("\n")`
	// Idle is true while the dashboard is connected and no turn is running.
	Idle = Connected + ` && !document.querySelector("[aria-busy=true], .composer button[aria-label=Stop]")`
)

// Ask enters a message into the composer and submits the form. It first waits for the composer, because the dashboard renders it only
// after it has loaded the conversation.
func (p *page) Ask(text string) {
	p.t.Helper()
	p.Wait("the composer is shown", `document.querySelector("#composer")`)
	// The event makes the change look like typing.
	p.Eval(`(() => { const i = document.querySelector("#composer"); i.value = ` + strconv.Quote(text) + `; i.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	p.Eval(`document.querySelector("form.composer").requestSubmit()`)
}
