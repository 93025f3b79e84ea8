package discord

import (
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf16"
)

const (
	// maxComponents and maxTexts are limits of Components V2: all components, and the characters of all text displays.
	maxComponents = 40
	maxTexts      = 4000
	maxCustomID   = 100
	maxLabel      = 80
)

// Kinds of components.
const (
	typeRow       = 1
	typeButton    = 2
	typeText      = 10
	typeSeparator = 14
	typeContainer = 17
)

// Component is a component of a message. Fields that a type doesn't have are empty.
type Component struct {
	// Type says which of the other fields may be set.
	Type int `json:"type"`
	ID   int `json:"id,omitempty"`
	// Style is that of a button: 5 is a link, and 1 to 4 differ in color.
	Style int    `json:"style,omitempty"`
	Label string `json:"label,omitempty"`
	// CustomID comes back when a person presses the button.
	CustomID string `json:"custom_id,omitempty"`
	URL      string `json:"url,omitempty"`
	Disabled bool   `json:"disabled,omitempty"`
	// Content is the Markdown of a text display.
	Content string `json:"content,omitempty"`
	Accent  *int   `json:"accent_color,omitempty"`
	Divider *bool  `json:"divider,omitempty"`
	Spacing int    `json:"spacing,omitempty"`
	// Components are those in a row or a container.
	Components []Component `json:"components,omitempty"`
}

// Buttons returns the buttons of a message in order.
func (m *Message) Buttons() []Component {
	var list []Component
	walk(m.Components, func(c Component) {
		if c.Type == typeButton {
			list = append(list, c)
		}
	})
	return list
}

// walk calls f for all components, outer ones first.
func walk(list []Component, f func(Component)) {
	for _, c := range list {
		f(c)
		walk(c.Components, f)
	}
}

// texts returns the contents of all text displays.
func texts(list []Component) []string {
	var result []string
	walk(list, func(c Component) {
		if c.Type == typeText {
			result = append(result, c.Content)
		}
	})
	return result
}

// componentObjects returns components as the API does.
func componentObjects(list []Component) []Component {
	if list == nil {
		return []Component{}
	}
	return list
}

// components reads and checks the components of a request.
func (c *call) components(isV2 bool) ([]Component, *refusal) {
	var form struct {
		Components []Component `json:"components"`
	}
	if err := json.Unmarshal(c.raw, &form); err != nil {
		return nil, invalid("components", "BASE_TYPE_LIST", "The components are malformed.")
	}
	check := componentCheck{isV2: isV2, ids: map[string]bool{}}
	if failed := check.list("components", form.Components, 0); failed != nil {
		return nil, failed
	}
	switch {
	case isV2 && check.count > maxComponents:
		return nil, invalid("components", "COMPONENT_MAX_TOTAL_COMPONENTS_EXCEEDED", fmt.Sprintf("The maximum number of components is %d.", maxComponents))
	case isV2 && check.characters > maxTexts:
		return nil, invalid("components", "COMPONENT_DISPLAYABLE_TEXT_SIZE_EXCEEDED", fmt.Sprintf("The maximum size of displayable text is %d.", maxTexts))
	case !isV2 && len(form.Components) > 5:
		return nil, invalid("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	return form.Components, nil
}

// componentCheck checks the components of one message.
type componentCheck struct {
	isV2              bool
	ids               map[string]bool // custom ids
	count, characters int
}

// list checks components with a parent of some type, or 0.
func (k *componentCheck) list(field string, list []Component, parent int) *refusal {
	for i, c := range list {
		if failed := k.component(fmt.Sprintf("%s.%d", field, i), c, parent); failed != nil {
			return failed
		}
	}
	return nil
}

// component checks one component and those in it.
func (k *componentCheck) component(field string, c Component, parent int) *refusal {
	k.count++
	// allowed are the children of each type. Without Components V2 there are only rows with buttons.
	allowed := map[int][]int{
		0:             {typeRow, typeText, typeSeparator, typeContainer},
		typeRow:       {typeButton},
		typeContainer: {typeRow, typeText, typeSeparator},
	}
	isKnown := false
	for _, t := range allowed[parent] {
		isKnown = isKnown || t == c.Type && (k.isV2 || t == typeRow || t == typeButton)
	}
	if !isKnown {
		return invalid(field+".type", "UNION_TYPE_CHOICES", "The component type is not allowed here.")
	}
	switch c.Type {
	case typeText:
		n := len(utf16.Encode([]rune(c.Content)))
		k.characters += n
		if n < 1 {
			return invalid(field+".content", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 4000 in length.")
		}
	case typeRow:
		if n := len(c.Components); n < 1 || n > 5 {
			return invalid(field+".components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
		}
	case typeContainer:
		if len(c.Components) == 0 {
			return invalid(field+".components", "BASE_TYPE_REQUIRED", "This field is required")
		}
	case typeButton:
		return k.button(field, c)
	}
	return k.list(field+".components", c.Components, c.Type)
}

// button checks a button.
func (k *componentCheck) button(field string, c Component) *refusal {
	const link = 5
	switch {
	case c.Style < 1 || c.Style > 6:
		return invalid(field+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case len([]rune(c.Label)) > maxLabel:
		return invalid(field+".label", "BASE_TYPE_MAX_LENGTH", "Must be 80 or fewer in length.")
	case c.Label == "":
		return invalid(field, "BUTTON_COMPONENT_INVALID", "A button must have a label or an emoji.")
	case c.Style == link && c.URL == "", c.Style != link && c.CustomID == "":
		return invalid(field, "BUTTON_COMPONENT_CUSTOM_ID_REQUIRED", "A custom id required")
	case len([]rune(c.CustomID)) > maxCustomID:
		return invalid(field+".custom_id", "BASE_TYPE_MAX_LENGTH", "Must be 100 or fewer in length.")
	case c.CustomID != "" && k.ids[c.CustomID]:
		return &refusal{
			status: http.StatusBadRequest, code: 50035, message: "Invalid Form Body",
			errors: invalid(field+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated").errors,
		}
	}
	k.ids[c.CustomID] = true
	return nil
}
