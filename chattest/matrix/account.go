package matrix

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// versions answers with the versions of the specification. Clients choose their paths by these, so they include the one with authenticated media.
func (c *call) versions() (any, *failure) {
	return map[string]any{"versions": []string{"v1.1", "v1.10", "v1.11", "v1.12"}, "unstable_features": map[string]any{}}, nil
}

// flows answers with the ways to log in.
func (c *call) flows() (any, *failure) {
	return map[string]any{"flows": []any{map[string]any{"type": "m.login.password"}}}, nil
}

// login makes a device with a token of its own.
func (c *call) login() (any, *failure) {
	if text(c.content, "type") != "m.login.password" {
		return nil, refuse(http.StatusBadRequest, "M_UNKNOWN", "Unknown login type")
	}
	user := text(part(c.content, "identifier"), "user")
	localpart, _, _ := strings.Cut(strings.TrimPrefix(c.s.opt.User, "@"), ":")
	if c.s.opt.Password == "" || text(c.content, "password") != c.s.opt.Password || user != c.s.opt.User && user != localpart {
		return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "Invalid username or password")
	}
	token, device := c.s.newID("token"), text(c.content, "device_id")
	if device == "" {
		device = c.s.newID("DEVICE")
	}
	c.s.devices[token] = device
	return map[string]any{"user_id": c.s.opt.User, "access_token": token, "device_id": device}, nil
}

// whoami answers with the account and the device of the access token.
func (c *call) whoami() (any, *failure) {
	return map[string]any{"user_id": c.s.opt.User, "device_id": c.device, "is_guest": false}, nil
}

// profile answers with the displayname of the bot, or of a member of any room.
func (c *call) profile() (any, *failure) {
	user, name := c.r.PathValue("user"), ""
	if user == c.s.opt.User {
		name = c.s.opt.Name
	}
	for _, o := range c.s.rooms {
		if e := o.current("m.room.member", user); e != nil && name == "" {
			name = text(e.content, "displayname")
		}
	}
	if name == "" {
		return map[string]any{}, nil
	}
	return map[string]any{"displayname": name}, nil
}

// filter is what the server knows of a filter for syncs.
type filter struct {
	Room struct {
		Timeline struct {
			Limit int `json:"limit"`
		} `json:"timeline"`
	} `json:"room"`
	AccountData struct {
		Types    *[]string `json:"types"`
		NotTypes []string  `json:"not_types"`
	} `json:"account_data"`
}

// wantsData reports whether account data of a type is sent.
func (f *filter) wantsData(kind string) bool {
	included, excluded := f.AccountData.Types, f.AccountData.NotTypes
	return (included == nil || slices.Contains(*included, kind)) && !slices.Contains(excluded, kind) && !slices.Contains(excluded, "*")
}

// addFilter stores a filter for syncs. Its id is its number.
func (c *call) addFilter() (any, *failure) {
	var f filter
	if err := json.Unmarshal(c.raw, &f); err != nil {
		return nil, refuse(http.StatusBadRequest, "M_BAD_JSON", "invalid filter: %v", err)
	}
	c.s.filters = append(c.s.filters, c.raw)
	return map[string]any{"filter_id": strconv.Itoa(len(c.s.filters) - 1)}, nil
}

// parseFilter reads the filter of a sync: its JSON, or the id of one that was added.
func (s *Server) parseFilter(text string) (f filter, failed *failure) {
	f.Room.Timeline.Limit = 10
	raw := []byte(text)
	if text == "" {
		return f, nil
	}
	if text[0] != '{' {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n >= len(s.filters) {
			return f, refuse(http.StatusBadRequest, "M_INVALID_PARAM", "unknown filter %q", text)
		}
		raw = s.filters[n]
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, refuse(http.StatusBadRequest, "M_INVALID_PARAM", "invalid filter: %v", err)
	}
	return f, nil
}

// getAccountData answers with account data of the bot. Nothing is stored at first.
func (c *call) getAccountData() (any, *failure) {
	if c.r.PathValue("user") != c.s.opt.User {
		return nil, refuse(http.StatusForbidden, "M_FORBIDDEN", "Cannot get account data for other users.")
	}
	d, ok := c.s.accountData[c.r.PathValue("type")]
	if !ok {
		return nil, refuse(http.StatusNotFound, "M_NOT_FOUND", "Account data not found")
	}
	return d.content, nil
}

// putAccountData stores account data. A sync that waits is answered with it, unless its filter leaves it out.
func (c *call) putAccountData() (any, *failure) {
	if c.content == nil {
		return nil, refuse(http.StatusBadRequest, "M_NOT_JSON", "The request body is empty")
	}
	c.s.accountData[c.r.PathValue("type")] = datum{c.raw, c.s.next()}
	c.s.wake()
	return map[string]any{}, nil
}
