// Package recording records what a robot measures, is told, meets and sees as an MCAP file, which Foxglove and Rerun open, and runs the orders of such a file again.
//
//	/robot/body/head/pitch   what a part measures, as JSON, when it changed: {"val": 0.1, ...}; one topic for each part
//	/events                  what happens, as JSON
//	/orders                  the orders of all programs, as they begin and end (protobuf, kennel.robot.v1.OrderReport)
//	/camera/image            pictures (foxglove.CompressedImage), and /camera/calibration
//
// A message's log time is this machine's clock. Its publish time is the robot's clock, moved by as much as makes the fastest message arrive at once.
package recording

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
	"kennel/infra/mcap"
	kennel "kennel/sdk/go"
)

// Options say what is recorded. The zero value is everything but pictures, with up to ten values of a slot a second.
type Options struct {
	Names    []string // of parts and slots; none: all
	Rate     float64  // values of a slot a second, at most 50; 0: 10
	Pictures float64  // a second, at most 15; 0: none

	Tell func(Counts) // if not nil, is called after each message; it must not take long
}

// Counts are what a recording holds.
type Counts struct {
	Thing    string  `json:"thing"`
	Seconds  float64 `json:"seconds"`
	Values   int     `json:"values"` // messages of parts
	Events   int     `json:"events"`
	Orders   int     `json:"orders"` // begun
	Pictures int     `json:"pictures"`
	Missed   uint64  `json:"missed"` // values and pictures that newer ones replaced, and events and orders that did not arrive
	Bytes    int64   `json:"bytes"`
}

// Names of the topics that are not parts, and of what else the file holds.
const (
	eventsTopic      = "/events"
	ordersTopic      = "/orders"
	imageTopic       = "/camera/image"
	calibrationTopic = "/camera/calibration"
	robotMetadata    = "kennel.robot"
	descriptionFile  = "description.json"
)

const (
	flushEvery = 2 * time.Second // what a recording that is killed loses at most
	maxNames   = 64              // of one subscription
	maxWaiting = 256             // messages that are not written yet
)

// entry is a message before it is written.
type entry struct {
	at    time.Duration // by the robot's clock
	now   time.Time
	topic string
	write func(w *writer, e entry) error
}

// writer writes a recording.
type writer struct {
	*mcap.Writer
	channels map[string]uint16
	seq      map[uint16]uint32
	lead     time.Duration // this machine's clock less the robot's, the smallest seen
	led      bool
	count    Counts
	last     struct{ event, order uint64 } // numbers
}

// Record records r to out until ctx ends, which is no error, or the robot is lost. In each case out is a whole file. It needs the right look, and camera for pictures.
func Record(ctx context.Context, r *kennel.Robot, out io.Writer, o Options) (Counts, error) {
	d, err := r.Describe(ctx)
	if err != nil {
		return Counts{}, err
	}
	names := o.Names
	if len(names) == 0 {
		for _, p := range d.Parts {
			if len(p.Slots) > 0 {
				names = append(names, p.Full)
			}
		}
	}
	counted := &counter{Writer: out}
	m, err := mcap.NewWriter(counted, "kennel")
	if err != nil {
		return Counts{}, err
	}
	w := &writer{Writer: m, channels: map[string]uint16{}, seq: map[uint16]uint32{}}
	w.count.Thing = d.Thing
	begun := time.Now()
	if err := w.begin(d, begun); err != nil {
		return w.count, err
	}
	err = w.follow(ctx, r, o, names)
	w.count.Seconds = time.Since(begun).Seconds()
	err = errors.Join(err, w.Close())
	w.count.Bytes = counted.n
	return w.count, err
}

type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// follow writes what the robot says until ctx or a stream ends.
func (w *writer) follow(ctx context.Context, r *kennel.Robot, o Options, names []string) error {
	streams, cancel := context.WithCancel(ctx)
	defer cancel()
	entries := make(chan entry, maxWaiting)
	give := func(e entry) error {
		e.now = time.Now()
		select {
		case entries <- e:
			return nil
		case <-streams.Done():
			return streams.Err()
		}
	}
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	stream := func(run func(context.Context) error) {
		wg.Go(func() {
			err := run(streams)
			if ctx.Err() == nil {
				once.Do(func() { first = err })
			}
			cancel()
		})
	}
	stream(func(ctx context.Context) error {
		return r.Events(ctx, func(e *robotpb.Event) error { return give(event(e)) })
	})
	stream(func(ctx context.Context) error {
		return r.Orders(ctx, func(m *robotpb.OrderReport) error { return give(order(m)) })
	})
	for some := range slices.Chunk(names, maxNames) {
		stream(func(ctx context.Context) error {
			return r.Subscribe(ctx, o.Rate, func(v kennel.Values) error { return give(values(v)) }, some...)
		})
	}
	if o.Pictures > 0 {
		stream(func(ctx context.Context) error {
			return r.Pictures(ctx, kennel.Look{Format: "jpeg", Rate: o.Pictures}, func(p kennel.Picture) error { return give(image(p)) })
		})
	}
	go func() { wg.Wait(); close(entries) }()
	flush := time.NewTicker(flushEvery)
	defer flush.Stop()
	var failed error
	for {
		select {
		case e, ok := <-entries:
			if !ok {
				return errors.Join(first, failed)
			}
			if failed == nil {
				failed = w.take(e)
				if o.Tell != nil {
					o.Tell(w.count)
				}
			}
		case <-flush.C:
			if failed == nil {
				failed = w.Flush()
			}
		}
		if failed != nil {
			cancel()
		}
	}
}

// take writes e. The robot's clock is compared with this machine's.
func (w *writer) take(e entry) error {
	if lead := time.Duration(e.now.UnixNano()) - e.at; !w.led || lead < w.lead {
		w.lead, w.led = lead, true
	}
	return e.write(w, e)
}

func (w *writer) put(channel uint16, e entry, data []byte) error {
	w.seq[channel]++
	return w.Message(mcap.Message{ChannelID: channel, Sequence: w.seq[channel], LogTime: uint64(e.now.UnixNano()), PublishTime: uint64(max(0, e.at+w.lead)), Data: data})
}

func (w *writer) putJSON(topic string, e entry, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", topic, err)
	}
	return w.put(w.channels[topic], e, b)
}

// begin writes what the robot is, and the topics.
func (w *writer) begin(d *robotpb.Description, now time.Time) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(d)
	if err != nil {
		return err
	}
	err = errors.Join(w.Metadata(robotMetadata, map[string]string{"thing": d.Thing, "species": d.Species, "name": d.Name, "model": d.Model, "firmware": d.Firmware, "software": d.Software}),
		w.Attach(mcap.Attachment{LogTime: uint64(now.UnixNano()), CreateTime: uint64(now.UnixNano()), Name: descriptionFile, MediaType: "application/json", Data: text}))
	for _, p := range d.Parts {
		if len(p.Slots) > 0 {
			err = errors.Join(err, w.topic(topicOf(p.Full), p.Full, "jsonschema", "json", schemaOf(p)))
		}
	}
	set := &descriptorpb.FileDescriptorSet{} // with what it imports, imports first
	for imports, i := robotpb.File_robot_proto.Imports(), 0; i < imports.Len(); i++ {
		set.File = append(set.File, protodesc.ToFileDescriptorProto(imports.Get(i).FileDescriptor))
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(robotpb.File_robot_proto))
	files, merr := proto.Marshal(set)
	return errors.Join(err, merr,
		w.topic(ordersTopic, string((&robotpb.OrderReport{}).ProtoReflect().Descriptor().FullName()), "protobuf", "protobuf", files),
		w.topic(eventsTopic, "kennel.Event", "jsonschema", "json", []byte(eventSchema)),
		w.topic(imageTopic, "foxglove.CompressedImage", "jsonschema", "json", []byte(imageSchema)),
		w.topic(calibrationTopic, "foxglove.CameraCalibration", "jsonschema", "json", []byte(calibrationSchema)))
}

func (w *writer) topic(topic, schema, schemaEncoding, encoding string, data []byte) error {
	id, err := w.Schema(schema, schemaEncoding, data)
	if err != nil {
		return err
	}
	w.channels[topic], err = w.Channel(topic, id, encoding, nil)
	return err
}

func topicOf(full string) string { return "/" + strings.ReplaceAll(full, ".", "/") }

// schemaOf describes what a part measures. What is beyond a number's range is "Infinity", as in the API's JSON.
func schemaOf(p *robotpb.Part) []byte {
	slots := map[string]any{}
	for _, s := range p.Slots {
		about := map[string]any{"type": []string{"number", "string", "null"}}
		if s.Unit != "" {
			about["description"] = s.Unit
		}
		slots[s.Name] = about
	}
	b, _ := json.Marshal(map[string]any{"type": "object", "properties": slots}) // texts alone
	return b
}

const (
	eventSchema = `{"type":"object","properties":{"seq":{"type":"number"},"name":{"type":"string"},"warning":{"type":"boolean"},` +
		`"numbers":{"type":"array","items":{"type":"number"}},"texts":{"type":"array","items":{"type":"string"}}}}`
	timeSchema  = `{"type":"object","properties":{"sec":{"type":"integer"},"nsec":{"type":"integer"}}}`
	imageSchema = `{"title":"foxglove.CompressedImage","type":"object","properties":{"timestamp":` + timeSchema + `,"frame_id":{"type":"string"},` +
		`"data":{"type":"string","contentEncoding":"base64"},"format":{"type":"string"}}}`
	calibrationSchema = `{"title":"foxglove.CameraCalibration","type":"object","properties":{"timestamp":` + timeSchema + `,"frame_id":{"type":"string"},` +
		`"width":{"type":"integer"},"height":{"type":"integer"},"distortion_model":{"type":"string"},"D":{"type":"array","items":{"type":"number"}},` +
		`"K":{"type":"array","items":{"type":"number"}},"R":{"type":"array","items":{"type":"number"}},"P":{"type":"array","items":{"type":"number"}}}}`
)

func values(v kennel.Values) entry {
	return entry{at: v.At, write: func(w *writer, e entry) error {
		w.count.Missed += v.Missed
		parts, changed := map[string]map[string]any{}, map[string]bool{}
		for _, x := range v.Readings {
			if parts[x.Part] == nil {
				parts[x.Part] = map[string]any{}
			}
			parts[x.Part][x.Slot] = plain(x.Value)
			changed[x.Part] = changed[x.Part] || x.Changed
		}
		for _, part := range slices.Sorted(maps.Keys(changed)) {
			if _, known := w.channels[topicOf(part)]; !known || !changed[part] {
				continue
			}
			w.count.Values++
			if err := w.putJSON(topicOf(part), e, parts[part]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// plain returns a value as JSON can hold it.
func plain(v any) any {
	switch n, ok := v.(float64); {
	case ok && math.IsInf(n, 1):
		return "Infinity"
	case ok && math.IsInf(n, -1):
		return "-Infinity"
	case ok && math.IsNaN(n):
		return nil
	}
	return v
}

// gap counts what is missing between the numbers of two messages.
func (w *writer) gap(last *uint64, seq uint64) {
	if *last > 0 && seq > *last+1 {
		w.count.Missed += seq - *last - 1
	}
	*last = seq
}

func event(m *robotpb.Event) entry {
	return entry{at: time.Duration(m.AtUs) * time.Microsecond, write: func(w *writer, e entry) error {
		w.count.Events++
		w.gap(&w.last.event, m.Seq)
		return w.putJSON(eventsTopic, e, struct {
			Seq     uint64   `json:"seq"`
			Name    string   `json:"name"`
			Warning bool     `json:"warning"`
			Numbers []int64  `json:"numbers"`
			Texts   []string `json:"texts"`
		}{m.Seq, m.Name, m.Warning, append([]int64{}, m.Numbers...), append([]string{}, m.Texts...)})
	}}
}

func order(m *robotpb.OrderReport) entry {
	return entry{at: time.Duration(m.AtUs) * time.Microsecond, write: func(w *writer, e entry) error {
		if m.Ended == nil {
			w.count.Orders++
		}
		w.gap(&w.last.order, m.Seq)
		b, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		return w.put(w.channels[ordersTopic], e, b)
	}}
}

type stamp struct {
	Sec  int64 `json:"sec"`
	Nsec int64 `json:"nsec"`
}

const cameraFrame = "camera"

func image(p kennel.Picture) entry {
	return entry{at: p.At, write: func(w *writer, e entry) error {
		w.count.Missed += p.Missed
		w.count.Pictures++
		at := e.at + w.lead
		when := stamp{int64(at / time.Second), int64(at % time.Second)}
		if w.count.Pictures == 1 {
			if err := w.putJSON(calibrationTopic, e, map[string]any{"timestamp": when, "frame_id": cameraFrame, "width": p.Width, "height": p.Height,
				"distortion_model": "plumb_bob", "D": []float64{0, 0, 0, 0, 0}, "K": []float64{p.FX, 0, p.CX, 0, p.FY, p.CY, 0, 0, 1},
				"R": []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, "P": []float64{p.FX, 0, p.CX, 0, 0, p.FY, p.CY, 0, 0, 0, 1, 0}}); err != nil {
				return err
			}
		}
		return w.putJSON(imageTopic, e, map[string]any{"timestamp": when, "frame_id": cameraFrame, "data": p.Data, "format": p.Format})
	}}
}

// Kind returns an error of a robot or of its file with the kind that decides the exit code of a command; any other error as it is.
func Kind(err error) error {
	var refused *kennel.Error
	if !errors.As(err, &refused) {
		return err
	}
	kind := errs.Conflict
	switch refused.Code {
	case "file_missing", "not_found":
		kind = errs.NotFound
	case "file_wrong", "invalid", "unable":
		kind = errs.Invalid
	case "token_missing", "token_wrong", "right_missing", "certificate_wrong":
		kind = errs.Denied
	case "unreachable", "lost", "core_lost", "no_picture", "too_many_streams":
		kind = errs.Unavailable
	}
	return errs.Coded(kind, refused.Code, "%s", refused.Message)
}
