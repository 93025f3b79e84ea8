package browser

import "strconv"

// Expressions over the dashboard.
const (
	// Live is true while the page is connected.
	Live = `document.querySelector(".connection")?.dataset.state === "connected"`
	// Log is the text of the conversation as it is shown.
	Log = `[...document.querySelectorAll(".log article.message")].map((a) => a.innerText).join("\n")`
	// Idle is true while it is connected and nothing runs.
	Idle = Live + ` && !document.querySelector("[aria-busy=true], .composer button[aria-label=Stop]")`
)

// Ask types a message into the dashboard and sends it.
func (p *Page) Ask(text string) {
	p.t.Helper()
	p.Wait("the composer is there", `document.querySelector("#composer")`)
	// React looks at the element's own setter.
	p.Eval(`(() => { const i = document.querySelector("#composer"); Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, "value").set.call(i, ` + strconv.Quote(text) + `); i.dispatchEvent(new Event("input", { bubbles: true })); })()`)
	p.Eval(`document.querySelector("form.composer").requestSubmit()`)
}
