package sphinx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"kennel/speech/recognizer"
)

// enough is how many bytes of an utterance are heard before its processes start: a second. It tells as well as the whole whether there is noise to remove
// (28 of 28 sentences with noise at 10, 20 and 30 dB; 25 at 25 dB, next to the bound), and speech with the pause after it is longer.
const enough = 2 * recognizer.Rate

// stream is an utterance.
type stream struct {
	recognizer.Stream
	r       *Recognizer
	ctx     context.Context
	grammar string
	head    []byte
	ready   *decoding // nil: not started before the end
}

func (s *stream) Write(samples []int16) error {
	if err := s.Stream.Write(samples); err != nil || len(s.head) >= enough {
		return err
	}
	if s.head = recognizer.AppendPCM(s.head, samples); len(s.head) >= enough {
		select {
		case s.r.early <- struct{}{}:
			if s.ready, _ = s.r.start(s.ctx, s.grammar, level(s.head) < noisy); s.ready == nil { // decode starts it again, and returns the error
				<-s.r.early
			} else {
				s.ready.release = append(s.ready.release, func() { <-s.r.early })
			}
		default: // as many as decode at once have started already
		}
	}
	return nil
}

func (s *stream) Close() error {
	s.ready.stop()
	return s.Stream.Close()
}

// hear waits for a free decoder and decodes. A grammar that the decoder does not take costs its own sentences, and no others.
func (r *Recognizer) hear(ctx context.Context, grammar string, pcm []byte, ready *decoding) (recognizer.Result, error) {
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return recognizer.Result{}, fmt.Errorf("sphinx: wait for one of %d decoders: %w", r.cfg.Decoders, ctx.Err())
	}
	defer func() { <-r.slots }()
	got, err := r.decode(ctx, grammar, pcm, ready)
	if err != nil && grammar != "" && ctx.Err() == nil {
		got, err = r.decode(ctx, "", pcm, nil)
	}
	if err != nil {
		return recognizer.Result{}, fmt.Errorf("sphinx: %w", err)
	}
	return got, nil
}

// decoding is the processes of an utterance.
type decoding struct {
	remove bool     // noise
	audio  *os.File // in memory, empty until the utterance has ended
	others *os.File // in memory: what else the language model may have heard
	cancel context.CancelCauseFunc

	words, phones, wishes *process // wishes is nil without a language model
	release               []func()
}

// start starts the processes of an utterance. Each reads its models and then waits for the audio.
func (r *Recognizer) start(ctx context.Context, grammar string, remove bool) (_ *decoding, err error) {
	d := &decoding{remove: remove}
	defer func() {
		if err != nil {
			d.stop()
		}
	}()
	ctx, d.cancel = context.WithCancelCause(ctx)
	v, err := r.words.get(grammar)
	if err != nil {
		return nil, err
	}
	d.release = append(d.release, func() { r.words.release(v) })
	for _, f := range []**os.File{&d.audio, &d.others} {
		fd, err := unix.MemfdCreate("utterance", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("memory for an utterance: %w", err)
		}
		*f = os.NewFile(uintptr(fd), "utterance")
	}
	// Sentences of a grammar differ in how many ways it branches, which says nothing about how often people say them.
	if d.words, err = r.process(ctx, v, d, "-jsgf", filepath.Join(v.folder, grammarFile), "-lw", "1", "-silprob", "0.1"); err != nil {
		return nil, err
	}
	if d.phones, err = r.process(ctx, v, d, "-allphone", filepath.Join(r.cfg.Models, "en-us-phone.lm.bin"), "-allphone_ci", "yes"); err != nil {
		return nil, err
	}
	if r.words.model != "" {
		model, err := r.words.get(ofModel)
		if err != nil {
			return nil, err
		}
		d.release = append(d.release, func() { r.words.release(model) })
		if d.wishes, err = r.process(ctx, model, d, "-lm", filepath.Join(model.folder, grammarFile),
			"-nbest", strconv.Itoa(mostOthers), "-nbestdir", "/dev/fd", "-nbestext", ""); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// stop ends what still runs. It may be called more than once, and for nil.
func (d *decoding) stop() {
	if d == nil {
		return
	}
	d.cancel(nil)
	for _, p := range []*process{d.words, d.phones, d.wishes} {
		if p != nil {
			_ = p.cmd.Wait() // the result is there, or not wanted
		}
	}
	_, _ = d.audio.Close(), d.others.Close()
	for _, f := range d.release {
		f()
	}
	d.release = nil
}

// decode decodes samples, which stay in memory, with the processes of ready if they suit it.
func (r *Recognizer) decode(ctx context.Context, grammar string, pcm []byte, ready *decoding) (recognizer.Result, error) {
	// Of the phrases of nine voices, the removal of noise takes 2 in 100 where there is none; in noise 10 dB below speech, 48 of 100 are right without it and
	// 60 with it, and half as many wrong.
	noise := level(pcm)
	d := ready
	if d == nil || d.remove != (noise < noisy) {
		ready.stop()
		var err error
		if d, err = r.start(ctx, grammar, noise < noisy); err != nil {
			return recognizer.Result{}, err
		}
	}
	defer d.stop()
	if _, err := d.audio.Write(withRoom(pcm, r.noise)); err != nil {
		return recognizer.Result{}, fmt.Errorf("memory for an utterance: %w", err)
	}
	defer time.AfterFunc(r.cfg.Limit, func() { d.cancel(fmt.Errorf("no result within %v", r.cfg.Limit)) }).Stop()
	var words, phones, wishes []segment
	var all errgroup.Group
	hear := func(p *process, heard *[]segment) {
		all.Go(func() (err error) {
			if *heard, err = p.hear(); err != nil {
				d.cancel(err)
			}
			return err
		})
	}
	hear(d.words, &words)
	hear(d.phones, &phones)
	if d.wishes != nil {
		all.Go(func() (err error) {
			late := time.AfterFunc(r.cfg.Limit*2/5, d.wishes.cancel)
			wishes, err = d.wishes.hear()
			for i := range wishes {
				wishes[i].score /= finer
			}
			if !late.Stop() { // then the grammar's sentence is the answer
				return nil
			}
			if err != nil {
				d.cancel(err)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return recognizer.Result{}, err
	}
	text, confidence := judge(words, phones, noise, ofGrammar)
	if wishes != nil {
		others, err := d.rivals()
		if err != nil {
			return recognizer.Result{}, err
		}
		own, sure := judge(wishes, phones, noise, ofWishes)
		text, confidence = choose(sentence{text, confidence}, sentence{own, sure}, others, r.cfg.Means)
	}
	if confidence < r.cfg.Least {
		text = ""
	}
	return recognizer.Result{Text: text, Confidence: confidence, By: r.Name()}, nil
}

// rivals returns what else the language model may have heard.
func (d *decoding) rivals() ([]rival, error) {
	info, err := d.others.Stat()
	if err != nil {
		return nil, fmt.Errorf("other results of an utterance: %w", err)
	}
	b := make([]byte, info.Size())
	if _, err := d.others.ReadAt(b, 0); err != nil && len(b) > 0 {
		return nil, fmt.Errorf("other results of an utterance: %w", err)
	}
	return parseRivals(string(b))
}

// process is a decoder that waits for the name of its audio.
type process struct {
	cmd      *exec.Cmd
	ctx      context.Context
	cancel   context.CancelFunc
	list     io.WriteCloser
	out, log bytes.Buffer
}

// process starts a decoder with the search that args name.
func (r *Recognizer) process(ctx context.Context, v *vocabulary, d *decoding, args ...string) (*process, error) {
	p := &process{}
	p.ctx, p.cancel = context.WithCancel(ctx)
	remove := map[bool]string{true: "yes", false: "no"}[d.remove]
	p.cmd = exec.CommandContext(p.ctx, r.cfg.Program, append([]string{
		"-hmm", filepath.Join(r.cfg.Models, "en-us"), "-dict", filepath.Join(v.folder, dictFile), "-remove_noise", remove,
		"-ctl", "/dev/stdin", "-cepdir", "/dev/fd", "-cepext", "", "-adcin", "yes", "-hypseg", "/dev/stdout"}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = &p.out, &p.log, []*os.File{d.audio, d.others}
	p.cmd.WaitDelay = time.Second
	var err error
	if p.list, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.cancel()
		return nil, fmt.Errorf("%s: %w", r.cfg.Program, err)
	}
	return p, nil
}

// hear makes p decode the audio, and returns what it heard.
func (p *process) hear() ([]segment, error) {
	defer p.cancel()
	_, _ = io.WriteString(p.list, "3 0 -1 4\n") // the numbers of its files, all of the first; a decoder that has ended already says why below
	_ = p.list.Close()
	if err := p.cmd.Wait(); err != nil {
		if p.ctx.Err() != nil {
			return nil, fmt.Errorf("%s: %w", p.cmd.Path, context.Cause(p.ctx))
		}
		return nil, fmt.Errorf("%s: %w%s", p.cmd.Path, err, complaint(p.log.String()))
	}
	segments, err := parse(p.out.String())
	if err != nil {
		return nil, fmt.Errorf("output of %s: %w%s", p.cmd.Path, err, complaint(p.log.String()))
	}
	return segments, nil
}

// complaint returns the first error in a log of pocketsphinx.
func complaint(log string) string {
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, "ERROR") || strings.HasPrefix(line, "FATAL") {
			return ": " + strings.TrimSpace(line)
		}
	}
	return ""
}

var errOutput = errors.New("want UTTERANCE S . T . A . L . { FRAME SCORE SCORE WORD } FRAME")
