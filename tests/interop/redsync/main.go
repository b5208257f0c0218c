// SPDX-License-Identifier: MIT
//
// redsync as a peer: takes locks when told so on standard input. ../peer.hpp has the protocol.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// Between two attempts. redsync's own default is 50 to 250 ms.
const retryDelay = 10 * time.Millisecond

type peer struct {
	// The first of them.
	client *redis.Client
	locks  *redsync.Redsync
	// Guards holds and standard output.
	mutex sync.Mutex
	holds map[string]*redsync.Mutex
}

func (p *peer) say(format string, arguments ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Println(strings.Join(strings.Fields(fmt.Sprintf(format, arguments...)), " "))
}

func milliseconds(word string) time.Duration {
	count, _ := strconv.Atoi(word)
	return time.Duration(count) * time.Millisecond
}

func decode(word string) string {
	name, err := url.PathUnescape(word)
	if err != nil {
		return word
	}
	return name
}

// The delay is asked for after a refusal: from the first one on, `refused` is readable.
func (p *peer) newLock(name, lease string, refused chan<- struct{}) *redsync.Mutex {
	delay := func(int) time.Duration {
		select {
		case refused <- struct{}{}:
		default:
		}
		return retryDelay
	}
	return p.locks.NewMutex(decode(name), redsync.WithExpiry(milliseconds(lease)), redsync.WithTries(math.MaxInt32),
		redsync.WithRetryDelayFunc(delay))
}

func (p *peer) acquire(lock *redsync.Mutex, name, wait string) string {
	var err error
	if wait == "0" {
		err = lock.TryLock()
	} else {
		limit, cancel := context.WithTimeout(context.Background(), milliseconds(wait))
		defer cancel()
		err = lock.LockContext(limit)
	}
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
		return "busy"
	}
	if err != nil {
		return "error " + err.Error()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.holds[name] = lock
	return "granted"
}

func (p *peer) inBackground(name string, work func() string) {
	begin := time.Now()
	go func() {
		said := work()
		p.say("* %s %s %d", said, name, time.Since(begin).Microseconds())
	}()
}

// Adds one to a counter, `rounds` times, in two steps that only the lock makes one.
func (p *peer) count(name, counter, rounds string) string {
	key := decode(counter)
	limit, _ := strconv.Atoi(rounds)
	for round := 0; round < limit; round++ {
		lock := p.newLock(name, "10000", nil)
		if err := lock.Lock(); err != nil {
			return "error " + err.Error()
		}
		before, err := p.client.Get(context.Background(), key).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return "error " + err.Error()
		}
		if err := p.client.Set(context.Background(), key, before+1, 0).Err(); err != nil {
			return "error " + err.Error()
		}
		if _, err := lock.Unlock(); err != nil {
			return "error " + err.Error()
		}
	}
	return "counted"
}

// What an extension or a release said: false with an error, or without, when the key is not ours any more.
func okOrLost(done bool, err error) string {
	var taken *redsync.ErrTaken
	switch {
	case done:
		return "ok"
	case err == nil, errors.As(err, &taken), errors.Is(err, redsync.ErrLockAlreadyExpired):
		return "lost"
	default:
		return "error " + err.Error()
	}
}

func (p *peer) hold(name string) *redsync.Mutex {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.holds[name]
}

func (p *peer) answer(words []string) string {
	switch command := words[0]; command {
	case "connect":
		var pools []redsyncredis.Pool
		for index, port := range words[1:] {
			client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port})
			if err := client.Ping(context.Background()).Err(); err != nil {
				return "error " + err.Error()
			}
			pools = append(pools, goredis.NewPool(client))
			if index == 0 {
				p.client = client
			}
		}
		p.locks = redsync.New(pools...)
		p.holds = map[string]*redsync.Mutex{}
		return "ok"
	case "lock":
		return p.acquire(p.newLock(words[1], words[2], nil), words[1], words[3])
	case "start-lock":
		refused := make(chan struct{}, 1)
		lock := p.newLock(words[1], words[2], refused)
		p.inBackground(words[1], func() string { return p.acquire(lock, words[1], words[3]) })
		select {
		case <-refused:
			return "waiting"
		case <-time.After(10 * time.Second):
			return "error not refused"
		}
	case "extend":
		return okOrLost(p.hold(words[1]).Extend())
	case "unlock":
		return okOrLost(p.hold(words[1]).Unlock())
	case "token":
		return p.hold(words[1]).Value()
	case "start-count":
		p.inBackground(words[2], func() string { return p.count(words[1], words[2], words[3]) })
		return "counting"
	case "quit":
		return "bye"
	default:
		return "error unknown command " + command
	}
}

func main() {
	p := &peer{}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		answer := p.answer(strings.Fields(input.Text()))
		p.say("%s", answer)
		if answer == "bye" {
			return
		}
	}
}
