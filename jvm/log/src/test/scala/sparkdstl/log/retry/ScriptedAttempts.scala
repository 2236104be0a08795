package sparkdstl.log.retry

import java.io.IOException
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, CountDownLatch, ExecutionException}

import scala.util.Try

/** A task each of whose attempts is silent until the test ends it. Results are strings. */
final class ScriptedAttempts(override val name: String) extends Attempts[String] {
  private val outcomes = new ConcurrentHashMap[Int, CompletableFuture[String]]
  private val begun = new ConcurrentHashMap[Int, CountDownLatch]
  private val losses = new ConcurrentHashMap[Int, CompletableFuture[Try[String]]]

  override def run(attempt: Int): String = {
    begunLatch(attempt).countDown()
    try outcome(attempt).get()
    catch { case e: ExecutionException => throw e.getCause }
  }

  override def lost(attempt: Int, outcome: Try[String]): Unit = {
    val first = loss(attempt).complete(outcome)
    if (!first) throw new AssertionError(s"attempt $attempt was told twice that it lost")
  }

  def succeed(attempt: Int): Unit = {
    val _ = outcome(attempt).complete(s"$name $attempt")
  }

  def fail(attempt: Int, error: Throwable = new IOException("injected")): Unit = {
    val _ = outcome(attempt).completeExceptionally(error)
  }

  /** Returns once the attempt runs: its timers are armed then. */
  def awaitBegun(attempt: Int): Unit = begunLatch(attempt).await()

  def hasBegun(attempt: Int): Boolean = begunLatch(attempt).getCount == 0

  /** Returns once the attempt was told that it lost. */
  def awaitLost(attempt: Int): Try[String] = loss(attempt).get()

  def hasLost(attempt: Int): Boolean = loss(attempt).isDone

  private def outcome(attempt: Int): CompletableFuture[String] =
    outcomes.computeIfAbsent(attempt, _ => new CompletableFuture)

  private def begunLatch(attempt: Int): CountDownLatch = begun.computeIfAbsent(attempt, _ => new CountDownLatch(1))

  private def loss(attempt: Int): CompletableFuture[Try[String]] =
    losses.computeIfAbsent(attempt, _ => new CompletableFuture)
}
