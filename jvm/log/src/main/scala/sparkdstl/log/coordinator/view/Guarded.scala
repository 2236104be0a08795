package sparkdstl.log.coordinator.view

/** A value that is replaced under one lock, and the only one that guards what stands in the log. Transitions must not block. */
private[coordinator] final class Guarded[S](initial: S) {
  // Guarded by this.
  private var current = initial

  def get: S = synchronized(current)

  def update(transition: S => S): S = synchronized {
    current = transition(current)
    current
  }

  /** Replaces the value, and returns what the transition says of it. */
  def modify[A](transition: S => (S, A)): A = synchronized {
    val (next, answer) = transition(current)
    current = next
    answer
  }
}
