package feishu

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	// lookupLimit limits the requests about one event. The platform waits three seconds for the confirmation of an event.
	lookupLimit = 2 * time.Second
	// namesLife is how long names are remembered, and namesGap the least time between two tries to load those of a group.
	namesLife = 24 * time.Hour
	namesGap  = 10 * time.Minute
	// maxGroups is how many groups are remembered. Beyond it all are forgotten.
	maxGroups = 1000
	// maxPages limits the pages of a group's members, of 100 each.
	maxPages = 10
)

// people remembers the names of the members of groups, because events contain ids only. Its methods may be called concurrently.
type people struct {
	mu      sync.Mutex
	byGroup map[string]names
}

// names are the names of the members of a group by their open ids. A map is never changed once it is made.
type names struct {
	byID     map[string]string
	loadedAt time.Time
}

// nameOf returns the name of a person in a group, or "" if it can't be found out: an answer is worth more than a name.
func (c *bot) nameOf(ctx context.Context, group, id string) string {
	c.people.mu.Lock()
	known := c.people.byGroup[group]
	c.people.mu.Unlock()
	age := time.Since(known.loadedAt)
	if name := known.byID[id]; age < namesGap || name != "" && age < namesLife {
		return name
	}
	byID, err := c.loadNames(ctx, group)
	if err != nil {
		c.log.Warn("names of a group's members can't be read; does the app have the permission im:chat.members:read?", "error", err)
	}
	c.people.mu.Lock()
	defer c.people.mu.Unlock()
	if c.people.byGroup == nil || len(c.people.byGroup) >= maxGroups {
		c.people.byGroup = map[string]names{}
	}
	c.people.byGroup[group] = names{byID, time.Now()}
	return byID[id]
}

// loadNames returns the names of the members of a group. If a page can't be read, the names of those before it are returned as well.
func (c *bot) loadNames(ctx context.Context, group string) (map[string]string, error) {
	byID, page := map[string]string{}, ""
	for range maxPages {
		var result struct {
			Members []struct {
				ID   string `json:"member_id"`
				Name string `json:"name"`
			} `json:"items"`
			HasMore bool   `json:"has_more"`
			Next    string `json:"page_token"`
		}
		query := url.Values{"member_id_type": {"open_id"}, "page_size": {"100"}}
		if page != "" {
			query.Set("page_token", page)
		}
		path := "/im/v1/chats/" + url.PathEscape(group) + "/members?" + query.Encode()
		if err := c.client.call(ctx, request{method: http.MethodGet, path: path}, &result); err != nil {
			return byID, err
		}
		for _, m := range result.Members {
			byID[m.ID] = m.Name
		}
		if page = result.Next; !result.HasMore {
			break
		}
	}
	return byID, nil
}

// isOwn reports whether a message was sent by the bot. An error means that it may be asked again; a message that the platform doesn't
// show isn't one of the bot.
func (c *bot) isOwn(ctx context.Context, message string) (bool, error) {
	var result struct {
		Items []struct {
			Sender struct {
				ID   string `json:"id"`
				Type string `json:"sender_type"`
			} `json:"sender"`
		} `json:"items"`
	}
	err := c.client.call(ctx, request{method: http.MethodGet, path: messagePath(message)}, &result)
	if e := refusal(err); e.Code != 0 && !e.isLimit() && e.Status < http.StatusInternalServerError {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return len(result.Items) > 0 && result.Items[0].Sender.Type == "app" && result.Items[0].Sender.ID == c.options.AppID, nil
}
