package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pbuild/bench/kind"
	"pbuild/engine/digest"
	"pbuild/engine/plan"
	"pbuild/engine/task"
)

func (a *app) showCommand() *cobra.Command {
	var spec bool
	cmd := &cobra.Command{
		Use:   "show ADDR",
		Short: "Show a task: its key, its record, its history",
		Long: `Show a task: what its key holds, what its last run ended with, where and how it ran, and its earlier runs. Of a gate's member this is its verdict.

With --spec only what the task is to do.`,
		Args:              oneAddress,
		ValidArgsFunction: a.completeAddresses,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, o, step, err := a.loadTask(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.close()
			shown, err := s.shown(o, step)
			if err != nil {
				return err
			}
			switch {
			case spec && a.view.json:
				return a.view.document(struct {
					FormatVersion int                `json:"format_version"`
					Address       string             `json:"address"`
					Kind          string             `json:"kind"`
					Spec          []digest.Component `json:"spec"`
				}{formatVersion, shown.Address, shown.Kind, specOf(shown.Components)})
			case spec:
				a.showComponents(specOf(shown.Components))
			case a.view.json:
				return a.view.document(shown)
			default:
				a.show(shown)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&spec, "spec", false, "what the task is to do, and nothing else")
	return cmd
}

// A showJSON is the document of `show --json`. Key and components are those that the task has now; the record is the one that serves, else
// the newest that its address has.
type showJSON struct {
	FormatVersion int                `json:"format_version"`
	Address       string             `json:"address"`
	Key           *string            `json:"key"` // null while something upstream is to run
	Kind          string             `json:"kind"`
	Decision      string             `json:"decision"`
	Components    []digest.Component `json:"components"`
	Record        *recordJSON        `json:"record"`
	Failure       *failureJSON       `json:"failure"` // how a later run than the record's ended, which left none
	History       []historyJSON      `json:"history"`
	Depends       []string           `json:"depends"`
}

type recordJSON struct {
	Key         string                   `json:"key"`
	Status      task.Status              `json:"status"`
	Verdict     task.Verdict             `json:"verdict"`
	Outcome     string                   `json:"outcome"`
	BaseKind    *string                  `json:"base_kind"`
	Reason      string                   `json:"reason"`
	Exit        int                      `json:"exit"`
	Outputs     map[string]digest.Digest `json:"outputs"`
	Node        string                   `json:"node"`
	Isolation   string                   `json:"isolation"`
	Environment string                   `json:"environment"`
	Limits      string                   `json:"limits"`
	Started     string                   `json:"started"`
	Seconds     float64                  `json:"seconds"`
	Attempt     int                      `json:"attempt"`
	Run         string                   `json:"run"`
	Flags       []string                 `json:"flags"`
	Evidence    json.RawMessage          `json:"evidence"`
}

type failureJSON struct {
	Phase  string        `json:"phase"` // running: it began and did not end
	Status task.Status   `json:"status"`
	Detail string        `json:"detail"`
	Time   string        `json:"time"`
	Log    digest.Digest `json:"log"`
	Run    string        `json:"run"`
}

type historyJSON struct {
	Key     string       `json:"key"`
	Status  task.Status  `json:"status"`
	Verdict task.Verdict `json:"verdict"`
	Outcome string       `json:"outcome"`
	Started string       `json:"started"`
	Seconds float64      `json:"seconds"`
	Run     string       `json:"run"`
}

// shown gathers what there is to show of a step.
func (s *session) shown(o *task.Object, step int) (*showJSON, error) {
	id := o.Steps[step].Task
	p, err := s.decide(s.store, []task.ID{id}, nil)
	if err != nil {
		return nil, err
	}
	item := &p.Items[id]
	out := &showJSON{FormatVersion: formatVersion, Address: address(o, step), Kind: p.Graph.Tasks[id].Spec.Kind().Name, Decision: item.Decision.String(),
		Key: keyOf(item), Components: knownComponents(p.Why(id)), History: []historyJSON{}, Depends: dependsOf(p, id)}
	r, history := s.records(p, id)
	if r != nil {
		out.Record = recordOf(r)
		out.Record.Evidence, out.Record.BaseKind = s.evidence(r)
		if unstable(r, history) {
			out.Record.Flags = append(out.Record.Flags, task.FlagUnstable)
		}
	}
	if t := lastUnrecorded(s.store, p.Addresses(id), r, item.Decision == plan.Reuse, history); t != nil {
		out.Failure = &failureJSON{t.Phase, t.Status, cmp.Or(t.Detail, t.Outcome), stamp(t.Time), t.Log, t.Run}
	}
	for _, h := range history {
		out.History = append(out.History, historyJSON{h.Key.String(), h.Status, h.Verdict, h.Outcome.Outcome, stamp(time.Unix(0, h.Started)), h.Elapsed.Seconds(), h.Run})
	}
	return out, nil
}

// keyOf is a task's key, or nil while something upstream is to run.
func keyOf(item *plan.Item) *string {
	if !item.Known {
		return nil
	}
	k := item.Key.String()
	return &k
}

// records are the record that serves a task, else the newest that it has, nil where it has none; and every record that any of its addresses ran
// under, newest first.
func (s *session) records(p *plan.Plan, id task.ID) (r *task.Record, history []*task.Record) {
	for _, addr := range p.Addresses(id) {
		history = append(history, s.store.History(addr)...)
	}
	slices.SortStableFunc(history, func(a, b *task.Record) int { return cmp.Compare(b.Started, a.Started) })
	if r = p.Items[id].Record; r == nil && len(history) > 0 {
		r = history[0]
	}
	return r, history
}

// unstable says whether runs of one key came to different verdicts.
func unstable(r *task.Record, history []*task.Record) bool {
	return slices.ContainsFunc(history, func(h *task.Record) bool {
		return h.Key == r.Key && (h.Verdict != r.Verdict || h.Outcome.Outcome != r.Outcome.Outcome)
	})
}

func knownComponents(cs []plan.Comparison) []digest.Component {
	out := []digest.Component{}
	for _, c := range cs {
		if c.New != nil {
			out = append(out, *c.New)
		}
	}
	return out
}

func specOf(cs []digest.Component) []digest.Component {
	out := []digest.Component{}
	for _, c := range cs {
		if name, ok := strings.CutPrefix(c.Name, "spec."); ok {
			c.Name = name
			out = append(out, c)
		}
	}
	return out
}

func recordOf(r *task.Record) *recordJSON {
	out := &recordJSON{Key: r.Key.String(), Status: r.Status, Verdict: r.Verdict, Outcome: r.Outcome.Outcome, Reason: r.Reason, Exit: r.Exit,
		Outputs: map[string]digest.Digest{}, Node: r.Node, Isolation: r.Isolation, Environment: r.Environment, Limits: r.Limits,
		Started: stamp(time.Unix(0, r.Started)), Seconds: r.Elapsed.Seconds(), Attempt: r.Attempt, Run: r.Run, Flags: append([]string{}, r.Flags...)}
	for _, o := range r.Outputs {
		out.Outputs[o.Role] = o.Digest
	}
	return out
}

// evidence is the kind's own JSON: in the blob that a gate's verdict names, else in the record. base_kind is said by a gate's alone.
func (s *session) evidence(r *task.Record) (json.RawMessage, *string) {
	raw := r.Evidence
	if out, ok := r.Find(kind.Evidence); ok {
		if b, err := s.store.Blobs().Get(out.Digest); err == nil {
			raw = b
		}
	}
	if !json.Valid(raw) {
		return nil, nil
	}
	var said struct {
		BaseKind string `json:"base_kind"`
	}
	if json.Unmarshal(raw, &said) != nil || said.BaseKind == "" {
		return raw, nil
	}
	return raw, &said.BaseKind
}

func (a *app) show(d *showJSON) {
	v := a.view
	key := "not known until what runs before it has ended"
	if d.Key != nil {
		key = *d.Key
	}
	rows := [][]string{{"address", v.paint(bold, printable(d.Address))}, {"kind", d.Kind}, {"key", key}, {"decision", d.Decision}}
	columns(v.out, "", rows)
	if f := d.Failure; f != nil {
		a.showFailure(f, d.Address)
	}
	a.showRecord(d.Record, d.Key)
	if len(d.History) > 1 {
		v.printf("\nhistory\n")
		var rows [][]string
		for _, h := range d.History {
			rows = append(rows, []string{h.Started, h.Key[:12], string(h.Status), string(h.Verdict), h.Outcome, fmt.Sprintf("%.1fs", h.Seconds)})
		}
		columns(v.out, "  ", rows)
	}
	if len(d.Depends) > 0 {
		v.printf("\ndepends on\n")
		for _, dep := range d.Depends {
			v.printf("  %s\n", printable(dep))
		}
	}
	v.printf("\nkey holds\n")
	a.showComponents(d.Components)
}

// showFailure says how the last run ended, and that the record which is shown is not of it.
func (a *app) showFailure(f *failureJSON, addr string) {
	v := a.view
	word := cmp.Or(string(f.Status), f.Phase)
	if f.Phase == "running" {
		word = "not ended"
	}
	if f.Status != task.OK {
		word = v.paint(red, word)
	}
	v.printf("\nlast run %s; it left no record\n", word)
	rows := [][]string{{"time", f.Time}, {"run", f.Run}}
	if f.Detail != "" {
		rows = append(rows, []string{"cause", printable(f.Detail)})
	}
	if !f.Log.IsZero() {
		rows = append(rows, []string{"log", "pbuild log '" + printable(addr) + "'"})
	}
	columns(v.out, "  ", rows)
}

func (a *app) showRecord(r *recordJSON, key *string) {
	v := a.view
	if r == nil {
		v.printf("\nno record\n")
		return
	}
	if key != nil && *key != r.Key {
		v.printf("\nrecord (of another key: what the task is to do, or its inputs, have changed since)\n")
	} else {
		v.printf("\nrecord\n")
	}
	rows := [][]string{{"status", string(r.Status)}}
	add := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{name, printable(value)})
		}
	}
	add("verdict", string(r.Verdict))
	add("outcome", r.Outcome)
	if r.BaseKind != nil {
		add("base kind", *r.BaseKind)
	}
	add("reason", r.Reason)
	add("exit", fmt.Sprint(r.Exit))
	add("started", r.Started)
	add("seconds", fmt.Sprintf("%.1f", r.Seconds))
	add("attempt", fmt.Sprint(r.Attempt))
	add("run", r.Run)
	add("node", r.Node)
	add("isolation", r.Isolation)
	add("environment", r.Environment)
	add("limits", r.Limits)
	add("flags", strings.Join(r.Flags, ", "))
	for _, role := range sortedKeys(r.Outputs) {
		add("output "+role, r.Outputs[role].String())
	}
	columns(v.out, "  ", rows)
	if len(r.Evidence) > 0 {
		var b bytes.Buffer
		if json.Indent(&b, r.Evidence, "  ", "  ") == nil {
			v.printf("  evidence\n  %s\n", printable(b.String()))
		}
	}
}

func (a *app) showComponents(cs []digest.Component) {
	var rows [][]string
	for _, c := range cs {
		rows = append(rows, []string{printable(c.Name), printable(c.Shown)})
	}
	columns(a.view.out, "  ", rows)
}
