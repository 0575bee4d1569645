package tokenwire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := Parse[Refresh]([]byte(`{"access_token":"a.b.c","refresh_jwt_tokens":true,"expiration_minutes":5}`))
	if want := (Refresh{AccessToken: "a.b.c", JWT: true, ExpirationMinutes: 5}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for name, body := range map[string]string{
		"empty":         ``,
		"cut":           `{"access_token":"SECRET`,
		"unknown field": `{"access_tokenn":"SECRET"}`,
		"wrong type":    `{"access_token":["SECRET"]}`,
		"two":           `{"access_token":"SECRET"}{}`,
		"not an object": `"SECRET"`,
		"negative":      `{"expiration_minutes":-1}`,
		"large":         `{"access_token":"` + strings.Repeat("SECRET", MaxBody/6) + `"}`,
	} {
		got, err := Parse[Refresh]([]byte(body))
		if err == nil || got != (Refresh{}) {
			t.Errorf("%s: got %+v, %v; want an error and nothing else", name, got, err)
		} else if strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: the error repeats what was read: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"user_session":"x","client_name":"phone","app_id":"SDK","revoke_client_tokens":true}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Parse[Associate](b)
		if err != nil {
			return
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse[Associate](out); err != nil || again != v {
			t.Fatalf("%q became %+v, then %+v, %v", b, v, again, err)
		}
	})
}
