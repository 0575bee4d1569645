// Package recognizer turns speech into text, by whichever recogniser a house has.
package recognizer

import "context"

// Rate is the rate of all audio here, samples per second, one channel.
const Rate = 16000

// Recognizer is one way to recognise speech. All methods may be called concurrently.
type Recognizer interface {
	Name() string
	// Open begins an utterance. The end of ctx ends it.
	Open(ctx context.Context, e Expect) (Stream, error)
}

// Expect says what will be spoken.
type Expect struct {
	Language string // such as en-US
	// Grammar holds the sentences in JSGF, of which the public rule is command; "": those that the recogniser was made with. Recognisers that write whatever
	// they hear do not look at it.
	Grammar string
}

// Lexicon is a recogniser that hears only words which it has.
type Lexicon interface {
	// Lacks returns those of the words that it has not.
	Lacks(words []string) []string
}

// Monolingual is a recogniser that hears certain languages only.
type Monolingual interface {
	// Hears reports whether it hears a language, such as en-US.
	Hears(language string) bool
}

// Stream is one utterance, used by one goroutine.
type Stream interface {
	// Write takes samples as they come.
	Write(samples []int16) error
	// Partial returns what was understood so far, "" for nothing yet.
	Partial() string
	// Finish ends the samples, and waits for the result. A result without text means that nothing was understood.
	Finish() (Result, error)
	// Close gives up what the stream holds, also after Finish.
	Close() error
}

// Result is a recognised utterance.
type Result struct {
	Text       string
	Confidence float64 // 0 to 1
	By         string  // Name of the recogniser
}
