package openclaw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// decodeStrict decodes parameters and refuses unknown names. Unlike encoding/json it distinguishes sessionkey from sessionKey.
func decodeStrict(b []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(b, &value); err != nil {
		return err
	}
	return checkFields(value, reflect.TypeOf(to))
}

// checkFields refuses keys that are not written as the fields of t are.
func checkFields(value any, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch v := value.(type) {
	case []any:
		if t.Kind() != reflect.Slice || t.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for _, one := range v {
			if err := checkFields(one, t.Elem()); err != nil {
				return err
			}
		}
	case map[string]any:
		if t.Kind() != reflect.Struct {
			return nil
		}
		fields := map[string]reflect.Type{}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = strings.ToLower(f.Name[:1]) + f.Name[1:]
				if head, ok := strings.CutSuffix(name, "ID"); ok && head != "" {
					name = head + "Id"
				}
				name = strings.ReplaceAll(name, "iD", "id")
			}
			fields[name] = f.Type
		}
		for key, one := range v {
			ft, ok := fields[key]
			if !ok {
				return fmt.Errorf("unknown key %q", key)
			}
			if err := checkFields(one, ft); err != nil {
				return err
			}
		}
	}
	return nil
}
