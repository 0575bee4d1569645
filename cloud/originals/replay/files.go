package replay

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

// Answer is the cloud's answer to a file or to events. The original looks at the status alone: 200 lets it delete.
type Answer struct {
	Status int
	Text   string
}

// tries is how often a file or events are sent that are answered with a 5xx. The original keeps them, and does so for longer.
const tries = 4

func (r *Robot) https(ctx context.Context, method, address string, header map[string]string, body string) (a Answer, err error) {
	for range tries - 1 {
		if a, err = r.once(ctx, method, address, header, body); err != nil || a.Status < http.StatusInternalServerError {
			return a, err
		}
		select {
		case <-time.After(r.RetryPause):
		case <-ctx.Done():
			return a, ctx.Err()
		}
	}
	return r.once(ctx, method, address, header, body)
}

func (r *Robot) once(ctx context.Context, method, address string, header map[string]string, body string) (a Answer, err error) {
	transport := &http.Transport{TLSClientConfig: r.tls(""), DialContext: r.dial}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return Answer{resp.StatusCode, string(b)}, err
}

// ESN returns the robot's serial number.
func (r *Robot) ESN() string { return strings.TrimPrefix(r.Thing, "vic:") }

// SendEvents posts a JSON array of events as vic-dasmgr does (VEC-DAS-06). An answer with 200 must have the digest of the message.
func (r *Robot) SendEvents(ctx context.Context, address, array string) (Answer, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write([]byte(array)) // to memory
	_ = z.Close()                 // to memory
	message := base64.StdEncoding.EncodeToString(out.Bytes())
	a, err := r.https(ctx, http.MethodPost, address, map[string]string{"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
		"Action=SendMessage&MessageAttribute.1.Name=DAS-Transport-Version&MessageAttribute.1.Value.DataType=Number&MessageAttribute.1.Value.StringValue=2"+
			"&MessageAttribute.2.Name=Content-Encoding&MessageAttribute.2.Value.DataType=String&MessageAttribute.2.Value.StringValue=gzip%2C+base64"+
			"&MessageAttribute.3.Name=Content-Type&MessageAttribute.3.Value.DataType=String&MessageAttribute.3.Value.StringValue=application%2Fvnd.anki.json%3B+format%3Dnormal%3B+product%3Dvic"+
			"&MessageBody="+url.QueryEscape(message)+"&Version=2012-11-05")
	sum := md5.Sum([]byte(message))
	if err == nil && a.Status == http.StatusOK && !strings.Contains(a.Text, "<MD5OfMessageBody>"+hex.EncodeToString(sum[:])+"<") {
		err = fmt.Errorf("the answer %.200q lacks the digest of the message", a.Text)
	}
	return a, err
}

// Event returns one event for SendEvents.
func (r *Robot) Event(boot string, seq int, name string) string {
	return fmt.Sprintf(`{"source":"vic-engine","ts":%d,"seq":%d,"level":"event","robot_id":"%s","robot_version":"%s","boot_id":"%s","profile_id":"","feature_type":"","feature_run_id":"","event":"%s","uptime_ms":81234}`,
		time.Now().UnixMilli(), seq, r.ESN(), r.OS, boot, name)
}

// PutLog sends a log as vic-logmgr-upload does (VEC-LOG-05). folder ends with a slash.
func (r *Robot) PutLog(ctx context.Context, folder, name, content string) (Answer, error) {
	return r.https(ctx, http.MethodPut, folder+name, map[string]string{"Anki-App-Key": r.Servers.AppKey, "Usr-RobotESN": r.ESN(), "Usr-RobotOSRevision": "0", "Usr-RobotOSVersion": r.OS,
		"Usr-RobotRevision": "0", "Usr-RobotTimestamp": time.Now().UTC().Format(time.RFC3339), "Usr-RobotVersion": r.OS, "Usr-Username": ""}, content)
}

// PostCrash sends a dump as vic-crashuploader does (VEC-CRS-05).
func (r *Robot) PostCrash(ctx context.Context, address, name, dump string) (Answer, error) {
	var body strings.Builder
	w := multipart.NewWriter(&body)
	for _, f := range [][2]string{{"hostname", "Vector-A1B2"}, {"robot.esn", r.ESN()}, {"robot.os_version", r.OS}, {"robot.anki_version", r.OS}} {
		if err := w.WriteField(f[0], f[1]); err != nil {
			return Answer{}, err
		}
	}
	p, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="upload_file"; filename="` + name + `"`}, "Content-Type": {"application/octet-stream"}})
	if err != nil {
		return Answer{}, err
	}
	_, _ = io.WriteString(p, dump) // to memory
	if err := w.Close(); err != nil {
		return Answer{}, err
	}
	return r.https(ctx, http.MethodPost, address+"?format=minidump&token=0123", map[string]string{"Content-Type": w.FormDataContentType()}, body.String())
}
