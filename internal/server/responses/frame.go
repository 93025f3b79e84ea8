// The JSON of events and items.
//
// Absent and empty are different for the clients: an index of 0 and an empty list must be sent, and a field of another type must not. The fields that
// may be empty are pointers for that reason.

package responses

import (
	"github.com/leat-dev/leat/internal/server"
)

// frame is an event of a stream. Only the fields of its type are set. Those that clients need even if they are empty or 0 are pointers.
type frame struct {
	Type      string   `json:"type"`
	Number    int64    `json:"sequence_number"`
	Response  *object  `json:"response,omitempty"`
	Index     *int     `json:"output_index,omitempty"`
	ItemID    string   `json:"item_id,omitempty"`
	Content   *int     `json:"content_index,omitempty"`
	Summary   *int     `json:"summary_index,omitempty"`
	Item      *item    `json:"item,omitempty"`
	Part      *content `json:"part,omitempty"`
	Delta     string   `json:"delta,omitempty"`
	Text      *string  `json:"text,omitempty"`
	Arguments *string  `json:"arguments,omitempty"`
	Name      string   `json:"name,omitempty"`
	Logprobs  *[]any   `json:"logprobs,omitempty"`
}

// errorFrame is the event that ends a stream without the end of its response. Older clients read the fields, newer ones the error.
type errorFrame struct {
	Type    string    `json:"type"`
	Number  int64     `json:"sequence_number"`
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Param   *string   `json:"param"`
	Error   errorBody `json:"error"`
}

// errorBody is an error as the bodies of refused requests have it too. Param names a parameter of the request, and is null in streams: the request
// was accepted before its stream began.
type errorBody struct {
	Type    string  `json:"type"`
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
}

// appendFrame appends an event as a server-sent event.
func appendFrame(b []byte, name string, f any) ([]byte, error) {
	data, err := server.Marshal(f)
	if err != nil {
		return b, err
	}
	b = append(append(b, "event: "...), name...)
	b = append(append(b, "\ndata: "...), data...)
	return append(b, "\n\n"...), nil
}

// item is an item of an output, an input or a conversation.
type item struct {
	// Status is in_progress in the event that adds an item, and absent for items that have no progress.
	ID      string     `json:"id"`
	Type    string     `json:"type"`
	Status  string     `json:"status,omitempty"`
	Role    string     `json:"role,omitempty"`
	Content *[]content `json:"content,omitempty"`
	Summary *[]content `json:"summary,omitempty"`
	// CallID and Arguments are of calls, Output is of their results. Arguments are a JSON text, and not an object, because they grow as a text.
	CallID    string  `json:"call_id,omitempty"`
	Name      string  `json:"name,omitempty"`
	Arguments *string `json:"arguments,omitempty"`
	Output    *string `json:"output,omitempty"`
	Error     *string `json:"error,omitempty"`
	// Label names the server of a tool that the agent ran. Clients show it, and require it.
	Label string `json:"server_label,omitempty"`
	// Approval, Approve and Reason are of the answer to an approval request.
	Approval string `json:"approval_request_id,omitempty"`
	Approve  *bool  `json:"approve,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// content is a piece of an item.
type content struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	ImageURL    string `json:"image_url,omitempty"`
	Detail      string `json:"detail,omitempty"`
	Annotations *[]any `json:"annotations,omitempty"`
	Logprobs    *[]any `json:"logprobs,omitempty"`
}

// outputText returns a text of the agent.
func outputText(text string) content {
	return content{Type: "output_text", Text: text, Annotations: &[]any{}, Logprobs: &[]any{}}
}

// summaryText returns a text of reasoning.
func summaryText(text string) content { return content{Type: "summary_text", Text: text} }
