package mindlink

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"kennel/infra/api/motionwire"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/sockpath"
)

// Display is the display as the server needs it. An error with code "unable": this body has none.
type Display interface {
	Show(ctx context.Context, i Image) error
	// Page shows a page, or takes it away.
	Page(ctx context.Context, p Page) error
	Eyes(ctx context.Context, e Eyes) error
	// Watch calls give with frames of the display until ctx ends or give fails.
	Watch(ctx context.Context, rate float64, give func(Frame) error) error
}

// Mind is the character as the server needs it. Its methods are safe for concurrent use.
type Mind interface {
	List(ctx context.Context) (List, error)
	// Play blocks until the animation has ended, of which tell hears the beginning and the progress. It ends with ctx. An error: it never began.
	Play(ctx context.Context, r Request, tell func(Progress) error) (Ended, error)
	// Body returns how the body is made, and the motions of its own library. An error with code "unable": it has no joints that move by motions.
	Body(ctx context.Context) (motionwire.Body, error)
	// Judge checks a motion for this body. The verdict has no hash.
	Judge(ctx context.Context, d Draft) (motionwire.Verdict, error)
	// Say blocks until the text was heard, and Sound until the sound was, as Play does. An error: nothing was heard.
	Say(ctx context.Context, s Say, tell func(Progress) error) (Ended, error)
	Sound(ctx context.Context, s Sound, tell func(Progress) error) (Ended, error)
	// Stream plays samples that next returns until it returns io.EOF, and blocks until they were heard. Another error of next ends it at once.
	Stream(ctx context.Context, s Stream, next func() ([]int16, error), tell func(Progress) error) (Ended, error)
	Hush(program string)
	// Feel sets emotions and applies emotion events. If the robot has no effect for one of the events ("not_found"), or an emotion is unknown ("invalid"), nothing is done.
	Feel(ctx context.Context, f Feel) error
	// Feelings calls give with what the robot feels, at first and after each change, until ctx ends or give fails.
	Feelings(ctx context.Context, give func(Feeling) error) error
	// Listen calls give with what the robot plays until ctx ends or give fails. An error: this body cannot be heard.
	Listen(ctx context.Context, give func(Piece) error) error
}

// Our own limits.
const (
	maxBody  = 512 << 10
	patience = 2 * time.Second // for a caller that does not read
)

// Serve answers callers below root until ctx ends.
func Serve(ctx context.Context, root *os.Root, m Mind, d Display) error {
	mux := http.NewServeMux()
	mux.Handle("POST /list", ask(func(ctx context.Context, _ struct{}) (List, error) { return m.List(ctx) }))
	mux.Handle("POST /show", ask(func(ctx context.Context, i Image) (struct{}, error) {
		if len(i.Pixels) != ImageSize {
			return struct{}{}, errs.Coded(errs.Invalid, "invalid", "pixels: expected %d bytes, found %d", ImageSize, len(i.Pixels))
		}
		return struct{}{}, d.Show(ctx, i)
	}))
	mux.Handle("POST /page", ask(func(ctx context.Context, p Page) (struct{}, error) { return struct{}{}, d.Page(ctx, p) }))
	mux.Handle("POST /eyes", ask(func(ctx context.Context, e Eyes) (struct{}, error) { return struct{}{}, d.Eyes(ctx, e) }))
	mux.Handle("POST /hush", ask(func(_ context.Context, h Hush) (struct{}, error) { m.Hush(h.Program); return struct{}{}, nil }))
	mux.Handle("POST /feel", ask(func(ctx context.Context, f Feel) (struct{}, error) { return struct{}{}, m.Feel(ctx, f) }))
	mux.HandleFunc("POST /mood", func(w http.ResponseWriter, r *http.Request) { feelings(w, r, m) })
	mux.Handle("POST /play", told(m.Play))
	mux.Handle("POST /say", told(m.Say))
	mux.Handle("POST /sound", told(m.Sound))
	mux.HandleFunc("POST /stream", func(w http.ResponseWriter, r *http.Request) { stream(w, r, m) })
	mux.Handle("POST /body", ask(func(ctx context.Context, _ struct{}) (motionwire.Body, error) { return m.Body(ctx) }))
	mux.Handle("POST /judge", ask(m.Judge))
	mux.HandleFunc("POST /screen", func(w http.ResponseWriter, r *http.Request) { watch(w, r, d) })
	mux.HandleFunc("POST /listen", func(w http.ResponseWriter, r *http.Request) { listen(w, r, m) })
	ln, err := sockpath.ListenPrivate(root, SocketPath)
	if err != nil {
		return fmt.Errorf("mind: %s: %w", SocketPath, err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: patience, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() }) // who still plays hears the end of the connection
	defer stop()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func ask[Req, Resp any](do func(context.Context, Req) (Resp, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req Req
		err := kithttp.ReadJSON(r, &req, maxBody)
		if err == nil {
			var resp Resp
			if resp, err = do(r.Context(), req); err == nil {
				kithttp.WriteJSON(w, http.StatusOK, resp)
				return
			}
		}
		kithttp.WriteError(w, err)
	})
}

// told serves a call that tells its caller a line for each progress. The status says what is wrong only if it never began.
func told[Req any](do func(context.Context, Req, func(Progress) error) (Ended, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := kithttp.ReadJSON(r, &req, maxBody); err != nil {
			kithttp.WriteError(w, err)
			return
		}
		tellLines(w, func(tell func(Progress) error) (Ended, error) { return do(r.Context(), req, tell) })
	})
}

// tellLines answers with a line for each progress of do.
func tellLines(w http.ResponseWriter, do func(func(Progress) error) (Ended, error)) {
	out := http.NewResponseController(w)
	tell := func(p Progress) error { return writeLine(out, w, p) }
	ended, err := do(tell)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	_ = tell(Progress{Ended: &ended}) // a caller that is gone hears nothing
}

// writeLine sends a line of JSON.
func writeLine(out *http.ResponseController, w http.ResponseWriter, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return flush(out, w, append(b, '\n'))
}

// feelings tells what the robot feels until the caller leaves.
func feelings(w http.ResponseWriter, r *http.Request, m Mind) {
	out, begun := http.NewResponseController(w), false
	err := m.Feelings(r.Context(), func(f Feeling) error {
		begun = true
		return writeLine(out, w, f)
	})
	if err != nil && !begun {
		kithttp.WriteError(w, err)
	}
}

// stream plays the samples of a request while they come.
func stream(w http.ResponseWriter, r *http.Request, m Mind) {
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 can
	in := bufio.NewReader(r.Body)
	var s Stream
	line, err := in.ReadSlice('\n')
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		kithttp.WriteError(w, errs.Coded(errs.Invalid, "invalid", "stream: expected a line of JSON first: %w", err))
		return
	}
	tellLines(w, func(tell func(Progress) error) (Ended, error) {
		return m.Stream(r.Context(), s, func() ([]int16, error) { return readChunk(in) }, tell)
	})
}

// readChunk reads one chunk of a stream; io.EOF is the chunk that ends it.
func readChunk(r io.Reader) ([]int16, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return nil, fmt.Errorf("stream: expected the length of a chunk: %w", noEnd(err))
	}
	b := make([]byte, binary.LittleEndian.Uint16(n[:]))
	if len(b) == 0 {
		return nil, io.EOF
	}
	if len(b)%2 != 0 {
		return nil, errs.New(errs.Invalid, "stream: expected an even number of bytes in a chunk, found %d", len(b))
	}
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("stream: expected a chunk of %d bytes: %w", len(b), noEnd(err))
	}
	pcm := make([]int16, len(b)/2)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return pcm, nil
}

// noEnd is err, which no caller takes for the end of a stream.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// flush sends bytes to a caller that reads them soon.
func flush(out *http.ResponseController, w http.ResponseWriter, b []byte) error {
	_ = out.SetWriteDeadline(time.Now().Add(patience)) // a closed one fails in Write
	if _, err := w.Write(b); err != nil {
		return err
	}
	return out.Flush()
}

// listen sends what is played until the caller leaves. Its first bytes, a piece without samples, say that it listens.
func listen(w http.ResponseWriter, r *http.Request, m Mind) {
	out := http.NewResponseController(w)
	var b []byte
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	err := m.Listen(ctx, func(p Piece) error {
		b = appendPiece(b[:0], &p)
		return flush(out, w, b)
	})
	if err != nil && b == nil {
		kithttp.WriteError(w, err)
	}
}

// watch sends frames until the caller leaves.
func watch(w http.ResponseWriter, r *http.Request, d Display) {
	var req Watch
	err := kithttp.ReadJSON(r, &req, maxBody)
	if err == nil && !(req.Rate > 0 && req.Rate <= MaxRate+1) {
		err = errs.Coded(errs.Invalid, "invalid", "rate: expected above 0 to %.0f, found %v", MaxRate, req.Rate)
	}
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	out := http.NewResponseController(w)
	b, begun := make([]byte, 0, frameHead+ImageSize), false
	err = d.Watch(r.Context(), req.Rate, func(f Frame) error {
		begun = true
		return flush(out, w, appendFrame(b[:0], &f))
	})
	if err != nil && !begun {
		kithttp.WriteError(w, err)
	}
}
