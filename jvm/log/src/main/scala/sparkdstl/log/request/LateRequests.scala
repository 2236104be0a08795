package sparkdstl.log.request

import sparkdstl.log.runtime.Timer

/**
 * Says which requests take long, while they do: until one is given up, which may take minutes, nobody would learn from the
 * log why nothing goes on. Many tend to be late together, so there is one line at most in [[LateRequests.LateMillis]], and
 * it says how many others there were. Thread-safe.
 *
 * @param say
 *   writes a line to the log
 */
private[request] final class LateRequests(timer: Timer, say: String => Unit) {

  // Both guarded by this.
  private var saidAtNanos = Option.empty[Long]
  private var unsaid = 0

  /** A request is late, or late again. */
  def note(what: => String): Unit = {
    val now = timer.nowNanos
    val others = synchronized {
      val due = saidAtNanos.forall(now - _ >= LateRequests.LateMillis * 1000000)
      val others = Option.when(due)(unsaid)
      unsaid = if (due) 0 else unsaid + 1
      if (due) saidAtNanos = Some(now)
      others
    }
    others.foreach(count => say(if (count == 0) what else s"$what. So are, or were lately, $count other(s)"))
  }
}

private[request] object LateRequests {

  /** After how many milliseconds a request is late, and how long it is until it is so again. */
  val LateMillis = 30000L
}
