package voice

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"kennel/infra/errs"
)

// Metadata tells how the cloud understood (VEC-NLP-02, VEC-NLP-03). Its text is a person's words: it is not for logs.
type Metadata struct {
	Text       string
	Confidence float64
	Handler    string
}

const (
	ofText       = "text: "
	ofConfidence = " confidence: "
	ofHandler    = " handler: "
)

// String returns m as original robots write it, with two blanks before a name (peer facts, section 1). The zero value is "".
func (m Metadata) String() string {
	if m == (Metadata{}) {
		return ""
	}
	return fmt.Sprintf("%s%s %s%f %s%s", ofText, m.Text, ofConfidence, m.Confidence, ofHandler, m.Handler)
}

// ParseMetadata reads a metadata string, with one blank or two; "" is legal. The text may contain anything, also the names of the other parts.
func ParseMetadata(s string) (Metadata, error) {
	if s == "" {
		return Metadata{}, nil
	}
	rest, ok := strings.CutPrefix(s, ofText)
	if !ok {
		return Metadata{}, errs.New(errs.Invalid, "metadata of an intent: byte 0: want %q", ofText)
	}
	handler := strings.LastIndex(rest, ofHandler)
	if handler < 0 {
		return Metadata{}, errs.New(errs.Invalid, "metadata of an intent: want %q", ofHandler)
	}
	confidence := strings.LastIndex(rest[:handler], ofConfidence)
	if confidence < 0 {
		return Metadata{}, errs.New(errs.Invalid, "metadata of an intent: want %q before byte %d", ofConfidence, len(ofText)+handler)
	}
	number := strings.TrimSpace(rest[confidence+len(ofConfidence) : handler])
	c, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(c) || math.IsInf(c, 0) {
		return Metadata{}, errs.New(errs.Invalid, "metadata of an intent: confidence %.20q: want a number", number)
	}
	return Metadata{Text: strings.TrimSpace(rest[:confidence]), Confidence: c, Handler: strings.TrimSpace(rest[handler+len(ofHandler):])}, nil
}
