// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import sparkdstl.log.storage._

/**
 * A store in memory with scripted behaviour by operation, in order of the requests; other requests succeed. Records
 * the requests.
 */
final class ScriptedStore(override val replacesAtomically: Boolean = true) extends ObjectStore {
  import ScriptedStore._

  val memory = new MemoryObjectStore
  val asked = mutable.ArrayBuffer.empty[String]
  private val scripts = mutable.Map.empty[String, mutable.Queue[Behaviour]]
  private val always = mutable.Map.empty[String, Behaviour]

  def script(operation: String, behaviours: Behaviour*): Unit =
    scripts.getOrElseUpdate(operation, mutable.Queue.empty) ++= behaviours

  /** Requests without a script behave like this. */
  def always(operation: String, behaviour: Behaviour): Unit = always(operation) = behaviour

  @volatile var deletionPageSize: Int = Int.MaxValue

  def count(operation: String): Int = asked.count(_ == operation)

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = {
    val name = operation match {
      case _: StorageOperation.TryCreation => "createsExclusively"
      case other => other.kind.name
    }
    asked += name
    val next = scripts.get(name).filter(_.nonEmpty).map(_.dequeue())
    next.orElse(always.get(name)).getOrElse(Work).act(() => memory.begin(operation))
  }
}

object ScriptedStore {
  trait Behaviour {
    def act[T](work: () => Attempt[T]): Attempt[T]
  }

  object Work extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = work()
  }

  /** Fails without effect. */
  final case class Fail(error: Throwable = new IOException("injected")) extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = new Attempt(Future.failed(error))
  }

  /** Takes effect, then fails. */
  final case class LoseReply(error: Throwable = new IOException("injected: reply lost")) extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = {
      val _ = work()
      new Attempt(Future.failed(error))
    }
  }

  /** Takes effect and answers when [[release]]d, which another thread may do before the request; or only answers late. */
  final class Hang(answersLate: Boolean = false) extends Behaviour {
    private var waiting = Option.empty[() => Unit]
    private var isReleased = false
    @volatile var cancelled = false

    override def act[T](work: () => Attempt[T]): Attempt[T] = {
      val promise = Promise[T]()
      val early = if (answersLate) Some(work().result) else None
      def answer(): Unit = promise.completeWith(early.getOrElse(work().result)): Unit
      val mayAnswer = synchronized {
        waiting = Some(() => answer())
        isReleased
      }
      if (mayAnswer) answer()
      new Attempt(promise.future, () => cancelled = true)
    }

    def release(): Unit = synchronized {
      isReleased = true
      waiting
    }.foreach(_.apply())
  }
}
