package recording_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"kennel/infra/api/robotpb"
	"kennel/infra/mcap"
	kennel "kennel/sdk/go"
	"kennel/sdk/recording"
	"kennel/sdk/sdktest"
)

func connect(t *testing.T, stay bool) *kennel.Robot {
	t.Helper()
	fake := sdktest.Start(t, nil)
	fake.Stay = stay
	r, err := kennel.Connect(t.Context(), fake.File(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestRecord: all that the robot says is in the file, each topic as its schema says, and the file is whole however the recording ended.
func TestRecord(t *testing.T) {
	r := connect(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var b bytes.Buffer
	got, err := recording.Record(ctx, r, &b, recording.Options{Names: []string{"fake.count"}, Pictures: 15, Tell: func(c recording.Counts) {
		if c.Values >= 3 && c.Events >= 3 && c.Orders >= 3 && c.Pictures >= 3 {
			cancel()
		}
	}})
	want := recording.Counts{Thing: "vic:00e20100", Seconds: got.Seconds, Values: 3, Events: 3, Orders: 3, Pictures: 3, Missed: got.Missed, Bytes: int64(b.Len())}
	if err != nil || got != want || got.Seconds <= 0 || got.Missed < 3 {
		t.Fatalf("%+v, %v; want %+v", got, err, want)
	}
	m, err := mcap.NewReader(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	schemas, topics := map[uint16]*mcap.Schema{}, map[string][]string{}
	var robot map[string]string
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		switch x := rec.(type) {
		case *mcap.Metadata:
			robot = x.Values
		case *mcap.Schema:
			schemas[x.ID] = x
		case *mcap.Message:
			c := m.Channel(x.ChannelID)
			topics[c.Topic] = append(topics[c.Topic], text(t, schemas[c.SchemaID], x.Data))
			if x.LogTime < x.PublishTime || x.LogTime-x.PublishTime > uint64(10*time.Second) {
				t.Errorf("%s: published at %d, logged at %d", c.Topic, x.PublishTime, x.LogTime)
			}
		}
	}
	if robot["thing"] != "vic:00e20100" || robot["species"] != "vector" {
		t.Errorf("%v", robot)
	}
	if got := topics["/fake"]; !slices.Equal(got, []string{`{"count":0}`, `{"count":1}`, `{"count":2}`}) {
		t.Error(got)
	}
	if got := topics["/events"]; len(got) != 3 || got[2] != `{"seq":3,"name":"fake.happened","warning":true,"numbers":[2,-1],"texts":["x"]}` {
		t.Error(got)
	}
	if got := topics["/orders"]; len(got) != 3 || !strings.Contains(got[2], `"fake"`) {
		t.Error(got)
	}
	var image struct {
		Timestamp struct{ Sec, Nsec int64 }
		Data      string
		Format    string
	}
	if got := topics["/camera/image"]; len(got) != 3 || json.Unmarshal([]byte(got[0]), &image) != nil || image.Format != "jpeg" || image.Timestamp.Sec < 1e9 {
		t.Error(got)
	}
	if jpeg, err := base64.StdEncoding.DecodeString(image.Data); err != nil || !bytes.HasPrefix(jpeg, []byte{0xff, 0xd8}) {
		t.Errorf("%q, %v", jpeg, err)
	}
	if got := topics["/camera/calibration"]; len(got) != 1 || !strings.Contains(got[0], `"K":[320,0,2,0,386,1,0,0,1]`) {
		t.Error(got)
	}
}

// text returns a message as its schema reads it, with nothing but the file at hand.
func text(t *testing.T, s *mcap.Schema, data []byte) string {
	t.Helper()
	if s.Encoding != "protobuf" {
		if !json.Valid(data) || !json.Valid(s.Data) {
			t.Errorf("%s: %s by %s", s.Name, data, s.Data)
		}
		return string(data)
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(s.Data, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	d, err := files.FindDescriptorByName("kennel.robot.v1.OrderReport")
	if err != nil || string(d.FullName()) != s.Name {
		t.Fatalf("%v, %v", d, err)
	}
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	if err := proto.Unmarshal(data, m); err != nil {
		t.Fatal(err)
	}
	return m.String()
}

// TestLost: a robot that is lost ends the recording, which is whole.
func TestLost(t *testing.T) {
	var b bytes.Buffer
	_, err := recording.Record(t.Context(), connect(t, false), &b, recording.Options{Names: []string{"fake.count"}})
	if !errors.Is(err, &kennel.Error{Code: "core_lost"}) {
		t.Error(err)
	}
	if got, err := recording.Read(&b); err != nil || got.Cut || got.Thing != "vic:00e20100" {
		t.Errorf("%+v, %v", got, err)
	}
}

func do(text string) *robotpb.OrderRequest { return &robotpb.OrderRequest{Text: text} }

// TestReplay: orders that end as recorded are the same; others are told with both ends.
func TestReplay(t *testing.T) {
	r := connect(t, false)
	done := &robotpb.Ended{Outcome: "done", Words: "done", Moved: 0.1, Unit: "m"}
	step := &robotpb.OrderRequest{Steps: []*robotpb.Step{{Statements: []*robotpb.Statement{{Name: "robot.go", What: &robotpb.Statement_Call{Call: &robotpb.List{Items: []*robotpb.Value{{Kind: &robotpb.Value_Number{Number: 0.1}}}}}}}}}}
	orders := []recording.Order{
		{Request: step, Ended: done},
		{At: 20 * time.Millisecond, Request: do("blocked"), Ended: done},
		{At: 40 * time.Millisecond, Request: do("busy"), Ended: done},
		{At: 60 * time.Millisecond, Request: do("x"), Ended: &robotpb.Ended{Outcome: "done", Moved: 0.2, Unit: "m"}},
		{At: 60 * time.Millisecond, Request: do("y")},
	}
	var got []recording.Ran
	begun := time.Now()
	if err := recording.Replay(t.Context(), r, orders, func(x recording.Ran) error { got = append(got, x); return nil }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 60*time.Millisecond {
		t.Errorf("replayed in %v", took)
	}
	for i, want := range []string{"", "blocked", "busy", "0.1 m, not 0.2", ""} {
		if (got[i].Differs == "") != (want == "") || !strings.Contains(got[i].Differs, want) {
			t.Errorf("%d: %q, want %q", i, got[i].Differs, want)
		}
	}
	if text := recording.Text(step); text != "robot.go(0.1)" {
		t.Error(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := recording.Replay(ctx, r, orders, func(recording.Ran) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestRead: the orders of a file, in their order, with their ends; a file that was cut off is read as far as it goes.
func TestRead(t *testing.T) {
	var b bytes.Buffer
	w, err := mcap.NewWriter(&b, "test")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := w.Schema("kennel.robot.v1.OrderReport", "protobuf", nil)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := w.Channel("/orders", schema, "protobuf", nil)
	if err != nil {
		t.Fatal(err)
	}
	step := []*robotpb.Step{{Statements: []*robotpb.Statement{{Name: "headPitch", What: &robotpb.Statement_Set{Set: &robotpb.Value{Kind: &robotpb.Value_Number{Number: 0.5}}}}}}}
	for i, m := range []*robotpb.OrderReport{
		{Order: 6, AtUs: 900_000, Ended: &robotpb.Ended{Outcome: "done"}}, // it began before the recording
		{Order: 7, AtUs: 1_000_000, Program: "square", Steps: step, ForMs: 500},
		{Order: 8, AtUs: 1_250_000, Program: "other", Steps: step},
		{Order: 7, AtUs: 1_260_000, Ended: &robotpb.Ended{Outcome: "cancelled"}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Message(mcap.Message{ChannelID: channel, LogTime: uint64(i), Data: data}), w.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	cut := b.Len()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{cut, b.Len()} {
		got, err := recording.Read(bytes.NewReader(b.Bytes()[:n]))
		if err != nil || got.Cut != (n == cut) || len(got.Orders) != 2 {
			t.Fatalf("%+v, %v", got, err)
		}
		a, o := got.Orders[0], got.Orders[1]
		if a.At != 0 || a.Program != "square" || a.Request.ForMs != 500 || recording.Text(a.Request) != "headPitch = 0.5" || a.Ended.Outcome != "cancelled" ||
			o.At != 250*time.Millisecond || o.Ended != nil {
			t.Errorf("%+v, %+v", a, o)
		}
	}
	if _, err := recording.Read(strings.NewReader("KRT")); !errors.Is(err, mcap.ErrFormat) {
		t.Error(err)
	}
}
