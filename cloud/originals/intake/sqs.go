package intake

import (
	"cmp"
	"crypto/md5"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/xml"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kennel/infra/errs"
)

// maxMessage is the largest message of the queue service, in bytes (VEC-DAS-06).
const maxMessage = 256 << 10

// maxForm bounds the form around a message: percent signs may make three bytes of one.
const maxForm = 3*maxMessage + 8<<10

// Bounds of a form: the original has 12 pairs, the queue service takes 10 attributes.
const (
	maxPairs      = 64
	maxAttributes = 10
)

// Codes that clients of the queue service know.
const (
	codeAction   = "InvalidAction"
	codeMissing  = "MissingParameter"
	codeValue    = "InvalidParameterValue"
	codeForm     = "MalformedQueryString"
	codeContents = "InvalidMessageContents"
	codeAccess   = "AccessDenied"
	codeThrottle = "RequestThrottled"
	codeAway     = "ServiceUnavailable"
)

// attribute is an attribute of a message.
type attribute struct{ name, kind, value string }

// message is the content of SendMessage.
type message struct {
	body       string
	attributes []attribute // by name
}

func (m message) attribute(name string) string {
	for _, a := range m.attributes {
		if a.name == name {
			return a.value
		}
	}
	return ""
}

func badForm(code, format string, args ...any) error {
	return errs.Coded(errs.Invalid, code, format, args...)
}

// parseSend reads the form of SendMessage (VEC-DAS-06). The order of its pairs does not count.
func parseSend(form string) (message, error) {
	pairs := map[string]string{}
	for n := 0; form != ""; n++ {
		var pair string
		pair, form, _ = strings.Cut(form, "&")
		k, v, _ := strings.Cut(pair, "=")
		key, kerr := url.QueryUnescape(k)
		value, verr := url.QueryUnescape(v)
		_, twice := pairs[key]
		switch {
		case n >= maxPairs:
			return message{}, badForm(codeForm, "the form has more than %d pairs", maxPairs)
		case kerr != nil || verr != nil:
			return message{}, badForm(codeForm, "pair %d, %.40q: malformed percent-encoding", n+1, k)
		case twice:
			return message{}, badForm(codeForm, "%.40q given twice", key)
		}
		pairs[key] = value
	}
	switch {
	case pairs["Action"] != "SendMessage":
		return message{}, badForm(codeAction, "Action %.40q: want SendMessage", pairs["Action"])
	case pairs["Version"] != "" && pairs["Version"] != "2012-11-05":
		return message{}, badForm(codeValue, "Version %.40q: want 2012-11-05", pairs["Version"])
	case pairs["MessageBody"] == "":
		return message{}, badForm(codeMissing, "the request must contain the parameter MessageBody")
	case len(pairs["MessageBody"]) > maxMessage:
		return message{}, badForm(codeValue, "MessageBody of %d bytes: must be shorter than %d bytes", len(pairs["MessageBody"]), maxMessage)
	}
	m := message{body: pairs["MessageBody"]}
	for i := 1; i <= maxAttributes; i++ {
		p := "MessageAttribute." + strconv.Itoa(i) + "."
		name, ok := pairs[p+"Name"]
		if !ok {
			break
		}
		a := attribute{name, pairs[p+"Value.DataType"], pairs[p+"Value.StringValue"]}
		if a.name == "" || a.value == "" || !strings.HasPrefix(a.kind, "String") && !strings.HasPrefix(a.kind, "Number") || m.attribute(name) != "" {
			return message{}, badForm(codeValue, "message attribute %d, %.40q: want a unique name, a value and the type String or Number", i, name)
		}
		m.attributes = append(m.attributes, a)
	}
	slices.SortFunc(m.attributes, func(a, b attribute) int { return cmp.Compare(a.name, b.name) })
	return m, nil
}

// digest returns the MD5 of the attributes, as the queue service makes it: each part with its length before it, the values of texts after a 1.
func (m message) digest() string {
	h := md5.New()
	put := func(s string) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(s))) // a hash takes everything
		_, _ = h.Write([]byte(s))
	}
	for _, a := range m.attributes {
		put(a.name)
		put(a.kind)
		_, _ = h.Write([]byte{1})
		put(a.value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// namespace belongs to all answers.
const namespace = "http://queue.amazonaws.com/doc/2012-11-05/"

type sent struct {
	XMLName xml.Name `xml:"SendMessageResponse"`
	NS      string   `xml:"xmlns,attr"`
	Result  struct {
		ID         string `xml:"MessageId"`
		Body       string `xml:"MD5OfMessageBody"`
		Attributes string `xml:"MD5OfMessageAttributes,omitempty"`
	} `xml:"SendMessageResult"`
	Request string `xml:"ResponseMetadata>RequestId"`
}

type failed struct {
	XMLName xml.Name `xml:"ErrorResponse"`
	NS      string   `xml:"xmlns,attr"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
	Detail  string   `xml:"Error>Detail"`
	Request string   `xml:"RequestId"`
}

// answer says that m was taken, under an id that its sender may check: it is the same when it comes again.
func (m message) answer(w http.ResponseWriter) {
	sum := md5.Sum([]byte(m.body))
	a := sent{NS: namespace, Request: requestID()}
	a.Result.ID, a.Result.Body = uuid(sum), hex.EncodeToString(sum[:])
	if len(m.attributes) > 0 {
		a.Result.Attributes = m.digest()
	}
	writeXML(w, http.StatusOK, a)
}

// uuid writes 16 bytes as an id.
func uuid(b [16]byte) string {
	s := hex.EncodeToString(b[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return uuid(b)
}

// codesOf are the queue service's words for the kinds of errors that have none.
var codesOf = map[errs.Kind]string{
	errs.Invalid: codeValue, errs.Denied: codeAccess, errs.Unauthenticated: codeAccess, errs.NotFound: codeAccess, errs.Exhausted: codeThrottle, errs.Unavailable: codeAway,
}

// refuseXML answers as the queue service does: an error of the sender's may not come again.
func refuseXML(w http.ResponseWriter, status int, err error) {
	f := failed{NS: namespace, Type: "Sender", Code: errs.CodeOf(err), Message: errs.Public(err), Request: requestID()}
	if !strings.ContainsFunc(f.Code[:min(1, len(f.Code))], func(r rune) bool { return 'A' <= r && r <= 'Z' }) { // one of ours
		f.Message = cmp.Or(f.Code, errs.KindOf(err).String()) + ": " + f.Message
		f.Code = cmp.Or(codesOf[errs.KindOf(err)], codeAway)
	}
	if status >= http.StatusInternalServerError {
		f.Type = "Receiver"
	}
	writeXML(w, status, f)
}

func writeXML(w http.ResponseWriter, status int, v any) {
	b, err := xml.Marshal(v)
	if err != nil { // of plain texts: cannot be
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(xml.Header)+len(b)))
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), b...)) // it fails only if the client is gone
}
