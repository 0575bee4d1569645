package owners

import (
	"strings"
	"testing"
)

func TestParseKeyed(t *testing.T) {
	if got, err := ParseKeyed([]byte(`{"key":"b1_x-9"}`)); err != nil || got.Key != "b1_x-9" {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, body := range map[string]string{
		"empty": ``, "no key": `{}`, "cut": `{"key":"a`, "another field": `{"key":"a","thing":"vic:1"}`, "more": `{"key":"a"}{}`,
		"null": `null`, "a list": `[]`, "blank": `{"key":"a b"}`, "NUL": `{"key":"a\u0000"}`, "long": `{"key":"` + strings.Repeat("a", 65) + `"}`,
		"too large": `{"key":"` + strings.Repeat("a", MaxBody) + `"}`,
	} {
		if got, err := ParseKeyed([]byte(body)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []Code{{"K7QM-3XW9", 600_000}} {
		b, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseCode(b); err != nil || got != c {
			t.Errorf("%s: %+v, %v", b, got, err)
		}
	}
	for _, s := range []Status{{DataCollection: true, CodeExpiresInMS: 1, CodeTriesLeft: 5}, {Owned: true, UserID: "a"}} {
		b, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseStatus(b); err != nil || got != s {
			t.Errorf("%s: %+v, %v", b, got, err)
		}
	}
	for _, body := range []string{`{}`, `{"code":"A","expires_in_ms":0}`, `{"code":"","expires_in_ms":1}`, `[]`} {
		if got, err := ParseCode([]byte(body)); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	for _, body := range []string{`{"owned":true}`, `{"user_id":"a"}`, `7`} {
		if got, err := ParseStatus([]byte(body)); err == nil {
			t.Errorf("%s: %+v", body, got)
		}
	}
	// A newer cloud may say more.
	if got, err := ParseStatus([]byte(`{"owned":true,"user_id":"a","mood":"good"}`)); err != nil || !got.Owned {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"key":"a"}`))
	f.Add([]byte(`{"code":"K7QM-3XW9","expires_in_ms":600000}`))
	f.Add([]byte(`{"owned":true,"user_id":"a","data_collection":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := ParseKeyed(b); err == nil {
			again, err := Encode(k)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ParseKeyed(again); err != nil || got != k {
				t.Fatalf("%s: %+v, %v", again, got, err)
			}
		}
		if c, err := ParseCode(b); err == nil {
			again, err := Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ParseCode(again); err != nil || got != c {
				t.Fatalf("%s: %+v, %v", again, got, err)
			}
		}
		if s, err := ParseStatus(b); err == nil {
			again, err := Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := ParseStatus(again); err != nil || got != s {
				t.Fatalf("%s: %+v, %v", again, got, err)
			}
		}
	})
}
