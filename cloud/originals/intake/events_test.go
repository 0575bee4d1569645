package intake_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go/aws"
	"github.com/aws/aws-sdk-go/aws/credentials"
	"github.com/aws/aws-sdk-go/aws/defaults"
	"github.com/aws/aws-sdk-go/aws/session"
	"github.com/aws/aws-sdk-go/service/sqs"

	"kennel/cloud/fleet/registry"
	"kennel/cloud/originals/intake"
	"kennel/cloud/telemetry/das"
	"kennel/infra/api/files"
	"kennel/infra/thing"
)

const boot = "0f9a1c1e-2b0c-4a6e-8a55-0f2f8c6d1b7a"

// event is an event as the original's manager writes it (VEC-DAS-01), with what is added to it.
func event(seq int, name, more string) string {
	return fmt.Sprintf(`{"source":"vic-engine","ts":1760000000123,"seq":%d,"level":"event","robot_id":"00e20100","robot_version":"2.0.1.6091","boot_id":"%s","profile_id":"",`+
		`"feature_type":"NoFeature","feature_run_id":"","event":"%s"%s,"uptime_ms":81234}`, seq, boot, name, more)
}

func array(events ...string) string { return "[" + strings.Join(events, ",") + "]" }

func zipped(text string) string {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(text)) // to memory
	_ = z.Close()                // to memory
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// sendForm is the form of vic-dasmgr around a message, byte for byte (VEC-DAS-06).
func sendForm(body string) string {
	return "Action=SendMessage&MessageAttribute.1.Name=DAS-Transport-Version&MessageAttribute.1.Value.DataType=Number&MessageAttribute.1.Value.StringValue=2" +
		"&MessageAttribute.2.Name=Content-Encoding&MessageAttribute.2.Value.DataType=String&MessageAttribute.2.Value.StringValue=gzip%2C+base64" +
		"&MessageAttribute.3.Name=Content-Type&MessageAttribute.3.Value.DataType=String&MessageAttribute.3.Value.StringValue=application%2Fvnd.anki.json%3B+format%3Dnormal%3B+product%3Dvic" +
		"&MessageBody=" + url.QueryEscape(body) + "&Version=2012-11-05"
}

// oldForm is the form of earlier software: other order, another type, no gzip.
func oldForm(text string) string {
	return "Action=SendMessage&MessageAttribute.1.Name=Content-Encoding&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=base64" +
		"&MessageAttribute.2.Name=Content-Type&MessageAttribute.2.Value.DataType=String&MessageAttribute.2.Value.StringValue=application%2Fvnd.anki%2Bjson%3B+format%3Dnormal%3B+product%3Dvic" +
		"&MessageAttribute.3.Name=DAS-Transport-Version&MessageAttribute.3.Value.DataType=Number&MessageAttribute.3.Value.StringValue=2" +
		"&MessageBody=" + url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))) + "&Version=2012-11-05"
}

func post(form string) string {
	return fmt.Sprintf("POST /das HTTP/1.1\r\nHost: kennel.lan:8444\r\nAccept: */*\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s", len(form), form)
}

// rows returns the stored events, the newest last.
func (r *rig) rows(t testing.TB) (out []das.Record) {
	t.Helper()
	out, err := r.store.List(t.Context(), das.Filter{}, 1000, das.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b das.Record) int { return int(a.Seq) - int(b.Seq) })
	return out
}

// TestEvents: VEC-DAS-06, VEC-DAS-09: what the original sends is answered as by the queue service, and stored once in the tables of all events, however often it
// comes; what is missing is counted, and how sure it is that the robot sent it.
func TestEvents(t *testing.T) {
	r := newRig(t)
	message := zipped(array(event(7, "robot.boot ", `,"s1":"a","i1":-3`), event(8, "module.unheard_of", ""), event(11, "robot.boot", "")))
	sum := md5.Sum([]byte(message))
	for range 2 {
		resp, body := r.raw(t, post(sendForm(message)))
		want(t, "the original's form", resp, body, 200, `<SendMessageResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><SendMessageResult><MessageId>`)
		want(t, "its digest", resp, body, 200, "<MD5OfMessageBody>"+hex.EncodeToString(sum[:])+"</MD5OfMessageBody><MD5OfMessageAttributes>")
		if got := resp.Header.Get("Content-Type"); got != "text/xml" {
			t.Errorf("content type %q", got)
		}
	}
	resp, body := r.raw(t, post(oldForm(array(event(12, "robot.late", `,"s2":"x"`), strings.Replace(event(13, "robot.no_clock", ""), "1760000000123", "0", 1)))))
	want(t, "the form of earlier software", resp, body, 200, "MessageId")
	rows := r.rows(t)
	var got []string
	for _, e := range rows {
		got = append(got, fmt.Sprintf("%d %s %s%s %d %d", e.Seq, e.Name, e.S1, e.S2, e.I1.N, e.TS))
	}
	if want := []string{"7 robot.boot a -3 1760000000123", "8 module.unheard_of  0 1760000000123", "11 robot.boot  0 1760000000123", "12 robot.late x 0 1760000000123", "13 robot.no_clock  0 0"}; !slices.Equal(got, want) {
		t.Errorf("stored\n%q, want\n%q", got, want)
	}
	boots, err := r.store.Boots(t.Context(), rex, time.Time{}, 10)
	if err != nil || len(boots) != 1 || boots[0].Events != 5 || boots[0].Lost != 2 || !slices.Equal(boots[0].Gaps, []das.Span{{First: 9, Last: 10}}) || boots[0].Origin != das.Claimed {
		t.Errorf("boots %+v, %v; want 5 events, 2 lost, unsigned", boots, err)
	}
	if r.objects(t) == 0 {
		t.Error("no raw batch was kept")
	}
}

// TestSigned: a genuine client of the queue service, with the robot's temporary credentials, checks the digests of the answer; its boot counts as signed.
func TestSigned(t *testing.T) {
	r := newRig(t)
	r.fleet.called.Peer = "192.0.2.1:40000" // the robot has moved
	client := func(id thing.ID) *sqs.SQS {
		c, err := r.grants.Mint(t.Context(), id, ann)
		if err != nil {
			t.Fatal(err)
		}
		// Made by hand: NewSession lets variables of the environment change the roots.
		return sqs.New(&session.Session{Handlers: defaults.Handlers(), Config: defaults.Config().WithRegion("us-west-2").WithEndpoint(r.srv.URL + "/das").WithHTTPClient(r.srv.Client()).
			WithMaxRetries(0).WithCredentials(credentials.NewStaticCredentials(c.AccessKeyID, c.SecretAccessKey.Reveal(), c.SessionToken.Reveal()))})
	}
	send := func(c *sqs.SQS, body string) error {
		text := func(kind, v string) *sqs.MessageAttributeValue {
			return &sqs.MessageAttributeValue{DataType: &kind, StringValue: &v}
		}
		_, err := c.SendMessage(&sqs.SendMessageInput{QueueUrl: aws.String(r.srv.URL + "/das"), MessageBody: &body, MessageAttributes: map[string]*sqs.MessageAttributeValue{
			"DAS-Transport-Version": text("Number", "2"), "Content-Encoding": text("String", "gzip, base64"),
			"Content-Type": text("String", "application/vnd.anki.json; format=normal; product=vic")}})
		return err
	}
	message := zipped(array(event(1, "robot.boot", "")))
	if err := send(client(rex), message); err != nil {
		t.Fatal(err)
	}
	if boots, err := r.store.Boots(t.Context(), rex, time.Time{}, 10); err != nil || len(boots) != 1 || boots[0].Origin != das.Signed {
		t.Errorf("boots %+v, %v", boots, err)
	}
	for name, tc := range map[string]struct {
		c    *sqs.SQS
		code string
	}{
		"another robot's": {client("vic:00e20101"), "AccessDenied"},
		"a wrong secret":  {client(rex), "SignatureDoesNotMatch"},
		"a foreign key":   {client(rex), "InvalidClientTokenId"},
	} {
		v, _ := tc.c.Config.Credentials.Get()
		switch name {
		case "a wrong secret":
			v.SecretAccessKey += "x"
		case "a foreign key":
			v.AccessKeyID = "AKIAIOSFODNN7EXAMPLE"
		}
		tc.c.Config.Credentials = credentials.NewStaticCredentialsFromCreds(v)
		if err := send(tc.c, message); err == nil || !strings.HasPrefix(err.Error(), tc.code) {
			t.Errorf("%s: %v; want %s", name, err, tc.code)
		}
	}
}

// TestEventByEvent: events with wrong types are refused, each for its reason; the others are stored, and the sender continues with its next file.
func TestEventByEvent(t *testing.T) {
	r := newRig(t)
	quote := event(3, "robot.said", `,"s1":"he said "no" loudly"`) // as the original writes it
	deep := event(5, "robot.deep", `,"x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000))
	for name, tc := range map[string]struct {
		text string
		want []uint64
	}{
		"types":   {array(event(1, "robot.a", `,"i1":"three"`), event(2, "robot.b", `,"i1":9223372036854775807`), strings.Replace(event(9, "robot.c", ""), `"seq":9`, `"seq":-1`, 1), "7", "[]", event(4, "no name", "")), []uint64{2}},
		"a quote": {array(event(2, "robot.b", ""), quote, event(6, "robot.f", "")), []uint64{2, 6}},
		"deep":    {array(deep, event(7, "robot.g", "")), []uint64{2, 5, 6, 7}},
		"another": {array(event(8, "robot.h", ""), strings.Replace(event(9, "robot.i", ""), "00e20100", "00e20101", 1)), []uint64{2, 5, 6, 7, 8}},
	} {
		if name == "deep" || name == "another" {
			continue
		}
		resp, body := r.raw(t, post(sendForm(zipped(tc.text))))
		want(t, name, resp, body, 200, "MessageId")
	}
	resp, body := r.raw(t, post(sendForm(zipped(array(deep, event(7, "robot.g", ""), strings.Replace(event(9, "robot.i", ""), "00e20100", "00e20101", 1))))))
	want(t, "deep", resp, body, 200, "MessageId")
	var got []uint64
	for _, e := range r.rows(t) {
		got = append(got, e.Seq)
	}
	if want := []uint64{2, 5, 6, 7}; !slices.Equal(got, want) {
		t.Errorf("stored %v, want %v", got, want)
	}
	resp, body = r.raw(t, post(sendForm(zipped(array(event(1, "robot.a", `,"i1":"three"`))))))
	want(t, "none is good", resp, body, 400, "event 1: ")
}

// TestEventsRefused: what is wrong as a whole gets the status and the code that clients of the queue service know; memory is bounded, and the process lives.
func TestEventsRefused(t *testing.T) {
	r := newRig(t, func(c *intake.Config) { c.Idle = 500 * time.Millisecond })
	good := zipped(array(event(1, "robot.boot", "")))
	bomb := zipped(strings.Repeat(" ", 64<<20))
	deep := zipped(strings.Repeat("[", 3<<20))
	many := zipped("[" + strings.Repeat("1,", 1<<20) + "1]")
	head := "POST /das HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cases := []struct {
		name, request string
		status        int
		code          string
	}{
		{"another action", post("Action=ReceiveMessage&Version=2012-11-05"), 400, "InvalidAction"},
		{"no body", post("Action=SendMessage&Version=2012-11-05"), 400, "MissingParameter"},
		{"another version", post("Action=SendMessage&Version=2009-02-01&MessageBody=x"), 400, "InvalidParameterValue"},
		{"percent signs", post("Action=SendMessage&MessageBody=%zz"), 400, "MalformedQueryString"},
		{"twice", post("Action=SendMessage&Action=SendMessage"), 400, "MalformedQueryString"},
		{"pairs", post(strings.Repeat("a=b&", 1000)), 400, "MalformedQueryString"},
		{"300 kB", post(sendForm(strings.Repeat("A", 300_000))), 400, "InvalidParameterValue"},
		{"a large form", head + "Content-Length: 100000000\r\n\r\n", 413, "too_large"},
		{"not base64", post(sendForm("***")), 400, "InvalidMessageContents"},
		{"not gzip", post(sendForm("AAAA")), 400, "InvalidMessageContents"},
		{"truncated gzip", post(sendForm(good[:len(good)/2/4*4])), 400, "InvalidMessageContents"},
		{"bomb", post(sendForm(bomb)), 400, "InvalidMessageContents"},
		{"no array", post(sendForm(zipped(`{"seq":1}`))), 400, "InvalidMessageContents"},
		{"deep JSON", post(sendForm(deep)), 400, "InvalidMessageContents"},
		{"a million numbers", post(sendForm(many)), 400, "InvalidMessageContents"},
		{"an empty array", post(sendForm(zipped("[]"))), 400, "InvalidMessageContents"},
		{"another type", post(strings.Replace(sendForm(good), "vnd.anki", "vnd.other", 1)), 400, "InvalidMessageContents"},
		{"another transport", post(strings.Replace(sendForm(good), "StringValue=2&", "StringValue=3&", 1)), 400, "InvalidMessageContents"},
		{"shorter than announced", head + "Content-Length: 100\r\n\r\nAction=" + cut, 400, "the end of the body"},
		{"no more comes", head + "Content-Length: 100\r\n\r\nAction=", 408, "slow_body"},
	}
	for _, c := range cases {
		resp, body := r.raw(t, c.request)
		want(t, c.name, resp, body, c.status, c.code)
		want(t, c.name, resp, body, c.status, `<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>`)
	}
	runtime.ReadMemStats(&after)
	if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > 64 {
		t.Errorf("%d MiB were allocated for %d bad messages", grown, len(cases))
	}
	r.denied.Store(true)
	resp, body := r.raw(t, post(sendForm(good)))
	want(t, "opted out (VEC-FLE-06)", resp, body, 403, "<Code>AccessDenied</Code>")
	r.denied.Store(false)
	if rows := r.rows(t); len(rows) != 0 {
		t.Errorf("stored %v", rows)
	}
	resp, body = r.raw(t, post(sendForm(good)))
	want(t, "after all that", resp, body, 200, "MessageId")
}

// TestDoor: who knows a serial number and is not at the robot's address is refused, and is not told which robots exist; the doctor is.
func TestDoor(t *testing.T) {
	r := newRig(t)
	good := post(sendForm(zipped(array(event(1, "robot.boot", "")))))
	other := post(sendForm(zipped(array(strings.ReplaceAll(event(1, "robot.boot", ""), "00e20100", "00e20999")))))
	said := map[string]bool{}
	for _, c := range []struct {
		name, request string
		change        func()
		why           string
	}{
		{"an unknown robot", other, func() {}, "not in this fleet"},
		{"a robot of ours", good, func() { r.fleet.presence = registry.Present }, "its own connection"},
		{"from elsewhere", good, func() { r.fleet.presence, r.fleet.called.Peer = registry.Calls, "192.0.2.1:40000" }, "no recent call"},
		{"from here, long ago", good, func() {
			r.fleet.called.Peer, r.fleet.called.Last = "127.0.0.1:1", time.Now().AddDate(0, -2, 0)
		}, "no recent call"},
		{"from here, refused", good, func() { r.fleet.called.Last, r.fleet.called.OK = time.Now(), false }, "no recent call"},
	} {
		c.change()
		resp, body := r.raw(t, c.request)
		want(t, c.name, resp, body, 403, "AccessDenied")
		if n := len(r.doubted); n == 0 || !strings.Contains(r.doubted[n-1], c.why) {
			t.Errorf("%s: the doctor reads %q, want %q", c.name, r.doubted, c.why)
		}
		_, text, _ := strings.Cut(body, "<Message>")
		text, _, _ = strings.Cut(text, "</Message>")
		said[strings.ReplaceAll(text, "00e20999", "00e20100")] = true
	}
	if len(said) != 1 {
		t.Errorf("strangers are told apart: %v", said)
	}
	resp, body := r.raw(t, putLog("/logs/"+logName, "x"))
	want(t, "its logs", resp, body, 403, "unproved")
	r.fleet.called.OK = true
	resp, body = r.raw(t, putLog("/logs/"+logName, "x"))
	want(t, "its logs, proved", resp, body, 200, "")
	resp, body = r.raw(t, strings.Replace(putLog("/logs/"+logName, "x"), "Usr-RobotESN: 00e20100\r\n", "", 1))
	want(t, "logs of no robot", resp, body, 400, "Usr-RobotESN")
	if names := r.names(t); !slices.Equal(names, []string{logName}) {
		t.Errorf("stored %q", names)
	}
}

// TestEventQuota: a robot's day has an end, and the next message is told so, and when to come again.
func TestEventQuota(t *testing.T) {
	r := newRigOf(t, 200)
	resp, body := r.raw(t, post(sendForm(zipped(array(event(1, "robot.boot", ""))))))
	want(t, "the first", resp, body, 200, "MessageId")
	resp, body = r.raw(t, post(sendForm(zipped(array(event(2, "robot.boot", ""))))))
	want(t, "beyond the day", resp, body, 429, "<Code>RequestThrottled</Code>")
}

// TestAtOnce: one address has at most a few bodies under way; robots with a certificate do not wait for it.
func TestAtOnce(t *testing.T) {
	r := newRig(t, func(c *intake.Config) { c.Idle = time.Minute })
	good := post(sendForm(zipped(array(event(1, "robot.boot", "")))))
	for range 2 {
		conn, err := tls.Dial("tcp", r.srv.Listener.Addr().String(), r.srv.Client().Transport.(*http.Transport).TLSClientConfig)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, strings.Replace(good[:strings.Index(good, "Action")], "Accept: */*", "Expect: 100-continue", 1)); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") { // it waits for the body
			t.Fatalf("%q, %v", line, err)
		}
	}
	resp, body := r.raw(t, good)
	want(t, "a third body", resp, body, 429, "at once")
	resp, body = r.raw(t, putLog(files.Log(logName), "x"))
	want(t, "a robot with a certificate", resp, body, 200, "")
}
