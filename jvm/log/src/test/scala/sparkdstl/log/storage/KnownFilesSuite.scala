// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import scala.concurrent.{Await, Future, Promise}
import scala.concurrent.duration.Duration
import scala.util.Try

import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalatest.funsuite.AnyFunSuite

class KnownFilesSuite extends AnyFunSuite {
  private class Fixture {
    val known = new KnownFiles(Thread.currentThread())
    val directory = new Path("s3a://bucket/checkpoint/offsets")
    val file = new Path(directory, "7")
    var asked = 0

    def counted[A](answer: Future[A]): Future[A] = {
      asked += 1
      answer
    }

    def now[A](future: Future[A]): A = Await.result(future, Duration.Zero)
    def status(path: Path, length: Long): FileStatus = new FileStatus(length, false, 1, 0, 0L, path)
    def bytes(length: Int): Option[ObjectTail] = Some(ObjectTail(new Array[Byte](length), length.toLong))
    def exists(path: Path, answer: Boolean = false): Boolean =
      now(known.exists(path)(counted(Future.successful(answer))))

    def lengthOf(path: Path)(stored: Int): Option[Long] =
      now(known.content(path)(_ => counted(Future.successful(bytes(stored))))).map(_.length)
  }

  test("a listing and a content answer further questions")(new Fixture {
    assert(now(known.listing(directory)(counted(Future.successful(Some(Vector(status(file, 3))))))).nonEmpty)
    assert(now(known.listing(directory)(counted(Future.successful(None)))).nonEmpty)
    assert(exists(directory) && exists(file) && !exists(new Path(directory, "8"), answer = true))
    private var listedLength = Option.empty[Long]
    now(known.content(file) { length =>
      listedLength = length
      counted(Future.successful(bytes(3)))
    })
    assert(listedLength.contains(3L))
    assert(lengthOf(file)(99).contains(3L))
    assert(asked == 2)
    known.read(new Path("s3a://bucket/checkpoint/state/0/0/_metadata/schema"), Array(1))
    assert(exists(new Path("s3a://bucket/checkpoint/state/0/0/_metadata")) && asked == 2, "it has a file")
    assert(!exists(new Path("s3a://bucket/other")) && !exists(new Path("s3a://bucket/other"), answer = true) &&
      asked == 3)
  })

  test("a question that comes while it is asked is not asked again")(new Fixture {
    private var inner = Option.empty[Future[Option[Vector[FileStatus]]]]
    now(known.listing(directory) {
      inner = Some(known.listing(directory)(counted(Future.successful(None))))
      counted(Future.successful(Some(Vector(status(file, 3)))))
    }): Unit
    assert(asked == 1 && inner.exists(of => now(of).nonEmpty))
  })

  test("a content of another length than in a newer listing is read again")(new Fixture {
    assert(lengthOf(file)(3).contains(3L))
    known.listed(directory, Vector(status(file, 4)))
    assert(lengthOf(file)(4).contains(4L))
    assert(lengthOf(file)(99).contains(4L) && asked == 2)
  })

  test("a write forgets the file, what exists, and the directories above")(new Fixture {
    known.listed(directory, Vector(status(file, 3)))
    known.read(file, Array(1, 2, 3))
    assert(!exists(new Path("s3a://bucket/checkpoint/x")))
    known.changed(file)
    assert(lengthOf(file)(5).contains(5L))
    assert(exists(new Path(directory, "8"), answer = true) &&
      exists(new Path("s3a://bucket/checkpoint/x"), answer = true))
  })

  test("an error is not kept, and callers share a request under way")(new Fixture {
    private val first = Promise[Option[ObjectTail]]()
    private val one = known.content(file)(_ => counted(first.future))
    private val other = known.content(file)(_ => counted(first.future))
    first.failure(new RuntimeException("no answer"))
    assert(asked == 1 && Try(now(one)).isFailure && Try(now(other)).isFailure)
    assert(lengthOf(file)(3).contains(3L) && asked == 2)
    private val failed = Promise[Option[Vector[FileStatus]]]()
    known.listing(directory)(failed.future): Unit
    private val answer = known.exists(directory)(Future.successful(true))
    failed.failure(new RuntimeException("no answer"))
    assert(now(answer), "asked for itself")
  })

  test("only the thread of the query gets answers")(new Fixture {
    private var ofOther = true
    private val other = new Thread(() => ofOther = known.isForCaller)
    other.start()
    other.join()
    assert(known.isForCaller && !ofOther)
  })
}
