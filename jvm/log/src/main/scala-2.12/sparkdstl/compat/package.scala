// SPDX-License-Identifier: Apache-2.0
package sparkdstl

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, ExecutionContextExecutor}
import scala.util.Try
import scala.util.control.NonFatal
import scala.util.matching.Regex

/** Methods of Scala 2.13 that neither Scala 2.12 nor `scala-collection-compat` has. */
package object compat {

  implicit final class OptionCompanionOps(private val companion: Option.type) extends AnyVal {
    def when[A](condition: Boolean)(value: => A): Option[A] = if (condition) Some(value) else None
    def unless[A](condition: Boolean)(value: => A): Option[A] = if (condition) None else Some(value)
  }

  implicit final class IteratorOps[A](private val iterator: Iterator[A]) extends AnyVal {
    def nextOption(): Option[A] = if (iterator.hasNext) Some(iterator.next()) else None
    def distinct: Iterator[A] = distinctBy(identity)

    def distinctBy[B](f: A => B): Iterator[A] = {
      val seen = mutable.HashSet.empty[B]
      iterator.filter(a => seen.add(f(a)))
    }
  }

  implicit final class SeqOps[A](private val elements: Vector[A]) extends AnyVal {
    def distinctBy[B](f: A => B): Vector[A] = new IteratorOps(elements.iterator).distinctBy(f).toVector
  }

  implicit final class MutableMapOps[K, V](private val map: mutable.Map[K, V]) extends AnyVal {
    def filterInPlace(keep: (K, V) => Boolean): Unit = map.retain(keep): Unit
  }

  implicit final class MutableSetOps[A](private val set: mutable.Set[A]) extends AnyVal {
    def filterInPlace(keep: A => Boolean): Unit = set.retain(keep)
  }

  implicit final class ExecutionContextOps(private val companion: ExecutionContext.type) extends AnyVal {

    /** Runs its tasks on the calling thread. */
    def parasitic: ExecutionContextExecutor = Parasitic
  }

  private object Parasitic extends ExecutionContextExecutor {
    override def execute(runnable: Runnable): Unit =
      try runnable.run()
      catch { case NonFatal(error) => reportFailure(error) }

    override def reportFailure(cause: Throwable): Unit = ExecutionContext.defaultReporter(cause)
  }

  implicit final class RegexOps(private val regex: Regex) extends AnyVal {
    def matches(text: CharSequence): Boolean = regex.pattern.matcher(text).matches
  }

  implicit final class ParsedStringOps(private val text: String) extends AnyVal {
    def toIntOption: Option[Int] = Try(text.toInt).toOption
    def toLongOption: Option[Long] = Try(text.toLong).toOption
  }
}
